# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The English and the Chinese documents agree: headings, code blocks, tables and their keys."""

from __future__ import annotations

import difflib
import re

import pytest

from probe.config.validators import STATISTICS
from probe.measure.statistics import STATISTICS as STATISTIC_TABLE
from probe.series.rules import RULES
from tests.support.pages import CODE, PAIRS, Page, page
from tests.support.paths import ROOT

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?:e-?\d+)?")


def differences(english: Page, chinese: Page) -> list[str]:
    """Return how two documents differ in the parts that must be equal, each with its place."""
    found = []
    levels = [[level for level, _ in side.headings] for side in (english, chinese)]
    if levels[0] != levels[1]:
        found.append(
            f"headings: {[text for _, text in english.headings]}, {[text for _, text in chinese.headings]}"
        )
    for (_, a), (_, b) in zip(english.headings, chinese.headings):
        if CODE.findall(a) != CODE.findall(b):
            found.append(f"code in headings: {a!r}, {b!r}")
    found += _pairs("code block", english.blocks, chinese.blocks)
    found += _pairs(
        "table row", *([_row(cells) for cells in side.rows] for side in (english, chinese))
    )
    found += _pairs(
        "picture",
        *([_language_free(file) for _, file in side.pictures] for side in (english, chinese)),
    )
    return found


def _pairs(kind: str, english: list, chinese: list) -> list[str]:
    """Return the items that one side alone has; an inserted item does not shift the others."""
    a, b = ([repr(item) for item in side] for side in (english, chinese))
    found = []
    for action, begin, end, first, last in difflib.SequenceMatcher(
        None, a, b, autojunk=False
    ).get_opcodes():
        if action != "equal":
            found += [
                f"{kind} {number + 1} only in English: {a[number]}" for number in range(begin, end)
            ]
            found += [
                f"{kind} {number + 1} only in Chinese: {b[number]}" for number in range(first, last)
            ]
    return found


def _row(cells: list[str]) -> tuple:
    """Return the number of cells of a row, the code in each, and the whole number of cells that are one."""
    code = [sorted(text for _, text in CODE.findall(cell)) for cell in cells]
    return (*code, *(cell if _NUMBER.fullmatch(cell) else "" for cell in cells))


def _language_free(file: str) -> str:
    return re.sub(r"^(\.\./)+", "", re.sub(r"\.(en|zh)\.", ".", file))


@pytest.mark.parametrize(("english", "chinese"), PAIRS.items(), ids=PAIRS)
def test_a_chinese_document_has_the_parts_of_the_english_one(english, chinese):
    assert differences(page(english), page(chinese)) == []


@pytest.mark.parametrize(("english", "chinese"), PAIRS.items(), ids=PAIRS)
def test_each_side_is_in_its_language(english, chinese):
    texts = [text for kind, text in page(chinese).parts if kind in ("heading", "line")]
    assert [
        text
        for text in texts
        if not _CHINESE.search(text) and re.search(r"[a-z]+ [a-z]+ [a-z]+", text)
    ] == []
    assert page(english).headings
    prose = page(english).prose.replace("[中文]", "")
    assert _CHINESE.findall(prose) == []


def test_every_chinese_document_has_its_english_one():
    found = {
        path.relative_to(ROOT).as_posix()
        for path in [*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs/zh").glob("*")]
    }
    assert found == set(PAIRS.values())


def test_the_glossaries_have_the_same_words():
    english, chinese = (page(name).rows for name in ("docs/glossary.md", "docs/zh/glossary.md"))
    words = [
        [row[0] for row in rows if row[0] not in ("word", "词")] for rows in (english, chinese)
    ]
    assert words[0] == words[1]


@pytest.mark.parametrize("name", ["settings", "choosing", "files"])
@pytest.mark.parametrize("folder", ["docs", "docs/zh"])
def test_every_statistic_is_documented(folder, name):
    code = {
        text.strip('"')
        for _, text in CODE.findall(page(f"{folder}/{name}.md").text.replace("\n", " "))
    }
    wanted = (
        {entry.key for entry in STATISTIC_TABLE.values()} if name == "files" else set(STATISTICS)
    )
    # underflow:float16 stands for those of the other dtypes
    assert {key for key in wanted if ":" not in key or key.endswith(":float16")} - code == set()


@pytest.mark.parametrize("folder", ["docs", "docs/zh"])
def test_every_rule_is_documented(folder):
    named = {row[0].strip("`") for row in page(f"{folder}/monitor.md").rows}
    assert set(RULES) - named == set()


SETTINGS = page("docs/settings.md")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("### Levels\n", "### Levels\n\n### More\n"),
        ("### Levels\n", "## Levels\n"),
        ("### synchronize\n", "### `synchronize`\n"),
        ("Did you mean 'tensor'?\n", "Did you mean 'Tensor'?\n"),
        ("    import logging\n", ""),
        ("| `quiet` |", "| `silent` |"),
        ('`"continue"`, `"raise"` | `"continue"` |', '`"continue"`, `"raise"` | `"raise"` |'),
        ("| `rank` | ", "| `a_new_key` | true | false | its meaning |\n| `rank` | "),
        ("| `stop()` |", "| stop |"),
    ],
)
def test_a_change_on_one_side_alone_is_found(old, new):
    chinese = page("docs/zh/settings.md")
    assert old in SETTINGS.text
    changed = Page("changed", SETTINGS.text.replace(old, new, 1))
    assert differences(changed, chinese) != differences(SETTINGS, chinese)


def test_a_change_of_the_chinese_side_alone_is_found():
    infinite = ("assert array[0] == np.inf", "assert array[0] == np.nan")
    changes = (("guide", *infinite), ("choosing", "\n## 估算", "\n### 估算"))
    for name, old, new in changes:
        english, chinese = page(f"docs/{name}.md"), page(f"docs/zh/{name}.md")
        assert old in chinese.text
        changed = Page("changed", chinese.text.replace(old, new, 1))
        assert differences(english, changed) != differences(english, chinese)
