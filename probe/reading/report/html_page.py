# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes the page of a report: one HTML file that needs neither network, server nor Python."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Iterable, Mapping
from typing import IO, Any

from probe.reading.report.columns import is_like, packed, packed_text
from probe.reading.report.content import Content
from probe.reading.report.part import CALL_COLUMNS, ROW_COLUMNS, ROW_NUMBERS

_HERE = os.path.dirname(os.path.abspath(__file__))
#: the script that draws curves, and those of the page, in the order in which they are joined
LIBRARY = "vendor/uPlot.iife.min.js"
SCRIPTS = (
    "page/language.js", "page/data.js", "page/elements.js", "page/strip.js",
    "page/table.js", "page/lines.js", "page/monitor.js", "page/experiments.js", "page/overview.js",
    "page/tree.js", "page/calls.js", "page/call.js", "page/steps.js", "page/ranks.js", "page/follow.js", "page/main.js",
)  # fmt: skip
STYLES = ("vendor/uPlot.min.css", "page/page.css")


def read(name: str) -> str:
    """Return the text of a file that lies beside this module."""
    with open(os.path.join(_HERE, *name.split("/")), encoding="utf-8") as file:
        return file.read()


def script(language: str) -> str:
    """Return the whole script of the page; the language "" leaves it to the browser."""
    joined = "\n".join(read(name) for name in SCRIPTS)
    texts = read("page/texts.json").strip()
    constants = f"const TEXTS = {texts};\nconst LANGUAGE = {json.dumps(language)};\n"
    whole = f'{read(LIBRARY)}\n(() => {{\n"use strict";\n{constants}{joined}\n}})();\n'
    return whole.replace("</script", "<\\/script")


def write(file: IO[str], content: Content, language: str = "") -> None:
    """Write the page into a file; the language "" leaves it to the browser."""
    code = script(language)
    style = "\n".join(map(read, STYLES))
    description = content.description
    title = f"{description['a']} | {description['b']}" if description["two"] else description["b"]
    head, _, rest = read("page/page.html").partition("@DATA@")
    for mark, text in (
        ("@LANGUAGE@", language or "en"),
        ("@STYLE_HASH@", _hash(style)),
        ("@SCRIPT_HASH@", _hash(code)),
        ("@STYLE@", style),
        ("@TITLE@", html.escape(title)),
    ):
        head = head.replace(mark, text)
    file.write(head)
    _column(file, "description", "json", packed_text(description))
    is_two = bool(description["two"])
    _columns(file, "call", content.merged.calls, (*CALL_COLUMNS, "index"), is_two)
    _columns(file, "row", content.merged.rows, (*ROW_COLUMNS, *ROW_NUMBERS), is_two)
    file.write(rest.replace("@SCRIPT@", code))


def _columns(
    file: IO[str], group: str, columns: Mapping[str, Any], names: Iterable[str], is_two: bool
) -> None:
    """Write the columns of calls or rows; of two runs B's numbers are kept as their difference from A's."""
    for name in names:
        column = columns[name]
        of_a = columns.get(f"{name[:-1]}a") if is_two and name.endswith("_b") else None
        base = of_a if of_a is not None and is_like(column, of_a) else None
        kind = column.typecode if base is None else f"{column.typecode}^"
        _column(file, f"{group}-{name}", kind, packed(column, base))


def _column(file: IO[str], name: str, kind: str, letters: str) -> None:
    file.write(
        f'<script type="text/plain" id="data-{name}" data-kind="{kind}">{letters}</script>\n'
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    letters = base64.b64encode(digest).decode("ascii")
    return f"sha256-{letters}"
