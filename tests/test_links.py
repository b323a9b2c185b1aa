# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every link, anchor, picture, file name and make target in the documents of both languages leads somewhere."""

from __future__ import annotations

import ast
import functools
import os
import re
import runpy
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from probe.naming import PREFIXES
from tests.architecture.source import read
from tests.support.pages import CODE, PAIRS, Page, every_page, page
from tests.support.paths import ROOT, make_targets

PAGES = every_page()
each_page = pytest.mark.parametrize("name", PAGES)
PICTURES = ("*.svg", "*.webp", "*.png", "*.jpg", "*.gif")


def broken(source: Page) -> list[str]:
    """Return the links of a document that lead nowhere, each with the reason."""
    found = []
    for target in [*source.links, *(file for _, file in source.pictures)]:
        path, _, anchor = target.partition("#")
        name = (
            os.path.normpath(os.path.join(os.path.dirname(source.name), path))
            if path
            else source.name
        )
        if re.match(r"[a-z]+:", target):
            found.append(f"{target}: the documents have no addresses outside of the project")
        elif path and not (ROOT / name).exists():
            found.append(f"{target}: no such file")
        elif anchor and anchor not in (page(name) if path else source).anchors:
            found.append(f"{target}: no such heading")
    return found


@each_page
def test_every_link_leads_to_a_file_and_a_heading(name):
    assert broken(page(name)) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("# A b\n[x](#a-b) [y](files.md#the-arrays) [z](../README.md) `[no](link)`", None),
        ("    [code](nowhere.md)", None),
        ("[x](nothing.md)", "no such file"),
        ("[x](files.md#nothing)", "no such heading"),
        ("# A\n[x](#b)", "no such heading"),
        ("![x](pictures/nothing.svg)", "no such file"),
        ("[x](https://example.org)", "no addresses"),
    ],
)
def test_a_broken_link_is_found(text, reason):
    found = broken(Page("docs/test.md", text))
    assert [reason in line for line in found] == ([True] if reason else [])


@each_page
def test_every_picture_has_a_description_and_is_in_the_language_of_its_page(name):
    other = ".en." if name in PAIRS.values() else ".zh."
    for description, file in page(name).pictures:
        assert description
        assert other not in file or "Chinese" in description


@pytest.mark.parametrize("name", [name for name in PAGES if name in PAIRS.values()])
def test_a_chinese_page_leads_to_chinese_pages(name):
    twins = {
        english: chinese
        for english, chinese in PAIRS.items()
        if chinese != name and english != "README.md"
    }
    folder = os.path.dirname(name)
    targets = {
        os.path.normpath(os.path.join(folder, link.partition("#")[0])) for link in page(name).links
    }
    assert targets & set(twins) == set()


@each_page
def test_every_make_target_and_file_in_code_exists(name):
    targets = {*make_targets("Makefile"), *make_targets("lab.mk")}
    code = [
        text
        for _, text in CODE.findall(
            "\n".join(text for kind, text in page(name).parts if kind != "code")
        )
    ]
    named = {target for text in code for target in re.findall(r"\bmake ([a-z0-9-]+)", text)}
    assert named - targets == set()
    files = {
        text
        for text in code
        if re.fullmatch(r"(probe|tests|docs|benchmarks|examples)/[\w./-]+", text)
    }
    made = set(re.findall(r"`(probe/[\w/.]+)`, a new file:", page(name).text))  # by a recipe
    assert {file for file in files - made if not (ROOT / file).exists()} == set()
    assert {file for file in made if (ROOT / file).exists()} == set()


NAMED = re.compile(r"(?<![\w/.{%-])(?:_?[A-Z]\w+(?:\.\w+)*|_\w+)(?![\w/-])")


def unknown(text: str) -> list[str]:
    """Return the classes, members and private names in the code spans of a text that the code does not have."""
    members, words = names_of_the_code()
    found = []
    for _, span in CODE.findall(text):
        for name in [] if re.search(r"\.(md|json|yaml|toml)$", span) else NAMED.findall(span):
            owner, *rest = name.split(".")
            known = (
                rest[0] in members[owner]
                if owner in members and rest
                else words.issuperset([owner, *rest])
            )
            found += [] if known else [name]
    return found


@functools.cache
def names_of_the_code():
    """Return the members of each class, and all words of the code."""
    members = {node.name: members_of(node) for module in read(ROOT) for node in module.classes}
    members.pop("Tensor")  # that of MindSpore is meant
    files = [path for name in ("probe", "tests") for path in (ROOT / name).rglob("*.py")]
    files.remove(Path(__file__))  # it names what the code does not have
    return members, set(re.findall(r"\w+", "\n".join(path.read_text("utf-8") for path in files)))


def members_of(node: ast.ClassDef) -> set[str]:
    """Return the names that a class defines or assigns through self."""
    inside = list(ast.walk(node))
    names = {it.name for it in inside if isinstance(it, (ast.FunctionDef, ast.ClassDef))}
    return (
        names
        | {it.id for it in inside if isinstance(it, ast.Name)}
        | {it.attr for it in inside if isinstance(it, ast.Attribute)}
    )


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/how-it-works.md", "docs/glossary.md"])
def test_the_names_of_the_code_exist(name):
    assert unknown("\n".join(text for kind, text in page(name).parts if kind != "code")) == []


def test_a_name_that_the_code_does_not_have_is_found():
    assert unknown(
        "`Settings.nothing_like_it` `_nothing_like_it(…)` `Settings.level` `_row(validator)`"
    ) == [
        "Settings.nothing_like_it",
        "_nothing_like_it",
    ]


MEMBER = re.compile(r"(?<![\w./-])([A-Z]\w*)\.([A-Za-z_]\w*)")
#: first parts of the names of entries, classes of MindSpore, and X, which stands for any name
NOT_OURS = {
    *PREFIXES.values(), "Cell", "Module", "Primitive", "Jit",
    "DynamicLossScaler", "Model", "Node", "Parameter", "Square", "Tensor", "X",
}  # fmt: skip
FILES = {"md", "py", "json"}


def missing_members(text: str) -> list[str]:
    """Return each `Class.member` of a text whose class has no such member, or is not in probe."""
    classes = classes_of_the_code()
    named = sorted(set(MEMBER.findall(text)))
    return [
        f"{owner}.{member}"
        for owner, member in named
        if owner not in NOT_OURS and member not in FILES
        if member not in classes.get(owner, ())
    ]


@functools.cache
def classes_of_the_code():
    """Return the members of each class of probe, with those of its bases; of a union those that all have."""
    modules = [
        *read(ROOT),
        *(it for it in read(ROOT, "tests") if it.path == "tests/support/dumps.py"),
    ]
    own, bases, unions = {}, {}, {}
    for module in modules:
        for node in module.classes:
            own.setdefault(node.name, set()).update(defined_in(node))
            bases.setdefault(node.name, set()).update(
                it.split("[")[0].rpartition(".")[2] for it in map(ast.unparse, node.bases)
            )
        for name, union in re.findall(r"^(\w+) = Union\[(.+?)\]", module.text, re.MULTILINE):
            unions[name] = union.split(", ")

    def members(name, seen=frozenset()):
        above = bases.get(name, set()) - {name} - seen
        return own.get(name, set()).union(*(members(base, seen | {name}) for base in above))

    found = {name: members(name) for name in own}
    for name, union in unions.items():
        if all(it in found for it in union):
            found[name] = set.intersection(*(found[it] for it in union))
    return found


def defined_in(node: ast.ClassDef) -> set[str]:
    """Return the methods and fields that a class itself has: in its body, or assigned through self."""
    found = set()
    for item in node.body:
        targets = getattr(item, "targets", [getattr(item, "target", item)])
        found.update(getattr(it, "name", getattr(it, "id", "")) for it in targets)
    found |= {
        it.attr
        for it in ast.walk(node)
        if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Store)
        if isinstance(it.value, ast.Name) and it.value.id == "self"
    }
    return found - {""}


def _is_python(block: str) -> bool:
    return block.lstrip().startswith("```python") or bool(
        re.search(r"^\s*(import|def|class) ", block, re.MULTILINE)
    )


DEVELOPERS = [name for name in PAGES if name == "CONTRIBUTING.md" or name.startswith("docs/")]


@pytest.mark.parametrize("name", DEVELOPERS)
def test_the_members_that_a_page_names_exist(name):
    parts = page(name).parts  # an example in Python may have classes of its own
    text = "\n".join(it for kind, it in parts if kind != "code" or not _is_python(it))
    assert missing_members(text) == []


def test_a_member_that_a_class_does_not_have_is_found():
    assert (
        missing_members("`StepRecorder.begin` and StepRecorder.task.gradient, `Tensor.relu`") == []
    )
    assert (
        missing_members("`BackwardEntry.close`, `ValuesTask.end_step`, `CaptureBackend.install`")
        == []
    )
    assert missing_members(
        "StepRecorder.synchronize → `NoClass.begin`, `CaptureBackend.begin`"
    ) == [
        "CaptureBackend.begin",
        "NoClass.begin",
        "StepRecorder.synchronize",
    ]


def test_every_picture_is_shown_somewhere():
    shown = {
        os.path.normpath(Path(name).parent / file)
        for name in PAGES
        for _, file in page(name).pictures
    }
    there = {
        path.relative_to(ROOT).as_posix()
        for kind in PICTURES
        for path in (ROOT / "docs").rglob(kind)
    }
    unused = {name for name in there - shown if not name.startswith("docs/report/")}
    assert unused == set()
    assert shown <= there


def test_the_drawings_are_those_of_their_program(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["diagrams.py", "--out", str(tmp_path)])
    runpy.run_path(str(ROOT / "docs" / "diagrams.py"), run_name="__main__")
    kept = {path.name: path.read_bytes() for path in (ROOT / "docs" / "pictures").iterdir()}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    for path in tmp_path.iterdir():
        root = ElementTree.parse(path).getroot()
        assert root.get("aria-label")
        assert root.find("{http://www.w3.org/2000/svg}title").text


def test_the_first_line_of_each_readme_leads_to_the_other_language():
    for name, other in (("README.md", "README.zh-CN.md"), ("README.zh-CN.md", "README.md")):
        assert f"]({other})" in page(name).text.splitlines()[0]
