# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Follows a recipe of CONTRIBUTING.md: puts its blocks of code at their places in a copy of the package.

The line above a block names the file and the place, such as "`probe/series/rules.py`, a row of `RULES`:".
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

from tests.support.pages import Page
from tests.support.planting import replaced, scopes

#: what a block is to its file -> the words above it; names stand in backticks
_PLACES = {
    "file": r"a new file",
    "end": r"at the end",
    "import": r"an import",
    "field": r"a field of `(?P<name>[^`]+)`",
    "item": r"an item of `(?P<name>[^`]+)`",
    "row": r"a row of `(?P<name>[^`]+)`(?:, before `(?P<before>[^`]+)`)?",
    "rows": r"rows(?: of `(?P<name>[^`]+)`)?",
    "argument": r"in `(?P<scope>[^`]+)`, an argument of `(?P<name>[^`]+)`",
    "instead": r"in `(?P<scope>[^`]+)`, in place of `(?P<name>[^`]+)`",
}
_STEP = re.compile(r"`(?P<path>(?:probe/[\w/.]+|support_ops\.yaml))`, (?P<place>.+):$")


class Step(NamedTuple):
    """A block of a recipe."""

    path: str
    place: str  # a key of ``_PLACES``
    names: dict[str, str | None]  # the names in backticks of the place
    code: str


def steps(page: Page, heading: str) -> list[Step]:
    """Return the steps below a heading that have a block of code."""
    found: list[Step] = []
    inside, words = False, ""
    for kind, text in page.parts:
        if kind == "heading":
            inside = text.lstrip("# ") == heading
        elif inside and kind == "code" and text.lstrip().startswith("```"):
            found.append(_step(words, textwrap.dedent(text).split("\n", 1)[1].rsplit("```", 1)[0]))
        words = f"{words} {text.strip()}" if kind == "line" else ""
    return found


def _step(words: str, code: str) -> Step:
    match = _STEP.search(words)
    if match:
        for place, form in _PLACES.items():
            if names := re.fullmatch(form, match["place"]):
                return Step(match["path"], place, names.groupdict(), code)
    raise ValueError(f"no place of a block: {words!r}")


def follow(root: Path, step: Step) -> None:
    """Do one step in a copy of the package below a folder."""
    path = root / step.path
    if step.place == "file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.code, "utf-8")
        return
    text = path.read_text("utf-8")
    path.write_text(_changed(text, step), "utf-8")


def _changed(text: str, step: Step) -> str:
    """Return the text of a module with the block of a step at its place."""
    if step.place == "rows":
        return _with_rows(text, step.names["name"], step.code)
    if step.place == "item":
        return _with_item(text, str(step.names["name"]), step.code)
    if step.place == "end":
        return f"{text}\n\n{step.code}"
    if step.place == "instead":
        place, wanted = f":{step.names['scope']}", _statement(str(step.names["name"]))
        return replaced(text, place, wanted, step.code.strip())
    code = textwrap.indent(step.code, "    ") if step.place == "field" else step.code
    return _inserted(text, *_spot(text, step), code)


def _statement(words: str) -> str:
    """Return the statement that stands in one line of a page: the body of an `if` gets a line of its own."""
    try:
        ast.parse(words)
    except SyntaxError:
        return words.replace(": ", ":\n    ", 1)
    return words


def _spot(text: str, step: Step) -> tuple[int, int]:
    """Return the line and the column before which the block of a step belongs."""
    tree, name = ast.parse(text), step.names.get("name")
    if step.place == "import":
        last = [it for it in tree.body if isinstance(it, (ast.Import, ast.ImportFrom))][-1]
        return last.end_lineno + 1, 0
    if step.place == "field":
        (kind,) = [it for it in ast.walk(tree) if isinstance(it, ast.ClassDef) and it.name == name]
        return kind.end_lineno + 1, 0
    if step.place == "argument":
        (scope,) = scopes(tree, str(step.names["scope"]).split("."))
        calls = [it for it in ast.walk(scope) if isinstance(it, ast.Call)]
        (holder,) = [it for it in calls if ast.unparse(it.func).split(".")[-1] == name]
    else:
        (table,) = scopes(tree, [str(name)])
        holder = table.value
        before = step.names["before"]
        if before is not None:
            (row,) = [it for it in holder.elts if before in ast.get_source_segment(text, it)]
            return row.lineno, row.col_offset
    return holder.end_lineno, holder.end_col_offset - 1


def _inserted(text: str, line: int, column: int, code: str) -> str:
    """Return a text with code before a line and column of it; a comma is put between it and an item before."""
    lines = text.encode().splitlines(keepends=True)
    head = b"".join([*lines[: line - 1], lines[line - 1][:column] if line <= len(lines) else b""])
    tail = b"".join([lines[line - 1][column:], *lines[line:]]) if line <= len(lines) else b""
    needs_comma = column and head.rstrip()[-1:] not in (b",", b"(", b"[", b"{")
    return f"{head.decode()}{', ' if needs_comma else ''}{code}{tail.decode()}"


def _with_rows(text: str, name: str | None, code: str) -> str:
    """Return a JSON document with rows of an object, or of the document itself."""
    document = json.loads(text)
    (document if name is None else document[name]).update(json.loads(f"{{{code}}}"))
    return json.dumps(document, ensure_ascii=False)


def _with_item(text: str, name: str, code: str) -> str:
    """Return a YAML document with an item in the list of a section, in alphabetical order."""
    lines = text.splitlines()
    item = f"  {code.strip()}"
    at = lines.index(f"{name}:") + 1
    while lines[at].startswith("  - ") and lines[at] < item:
        at += 1
    return "\n".join([*lines[:at], item, *lines[at:], ""])
