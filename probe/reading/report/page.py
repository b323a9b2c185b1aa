# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Writes the page: one HTML file that needs neither network, server nor Python."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from typing import IO

from probe.reading.report.columns import packed, packed_text
from probe.reading.report.content import Content
from probe.reading.report.part import CALL_COLUMNS, ROW_COLUMNS, ROW_NUMBERS

_HERE = os.path.dirname(os.path.abspath(__file__))
#: the scripts, in the order in which they are joined
SCRIPTS = (
    "vendor/uPlot.iife.min.js", "page/language.js", "page/data.js", "page/elements.js", "page/strip.js",
    "page/table.js", "page/lines.js", "page/overview.js", "page/tree.js", "page/calls.js", "page/call.js",
    "page/steps.js", "page/ranks.js", "page/main.js",
)  # fmt: skip
STYLES = ("vendor/uPlot.min.css", "page/page.css")


def read(name: str) -> str:
    """Return the text of a file that lies beside this module."""
    with open(os.path.join(_HERE, *name.split("/")), encoding="utf-8") as file:
        return file.read()


def script(language: str) -> str:
    """Return the whole script of the page; the language "" leaves it to the browser."""
    joined = "\n".join(read(name) for name in SCRIPTS[1:])
    constants = f"const TEXTS = {read('page/texts.json').strip()};\nconst LANGUAGE = {json.dumps(language)};\n"
    return f'{read(SCRIPTS[0])}\n(() => {{\n"use strict";\n{constants}{joined}\n}})();\n'.replace(
        "</script", "<\\/script"
    )


def write(file: IO[str], content: Content, language: str = "") -> None:
    """Write the page into a file; the language "" leaves it to the browser."""
    code, style = script(language), "\n".join(map(read, STYLES))
    description = content.description
    title = f"{description['a']} | {description['b']}" if description["two"] else description["b"]
    head, _, rest = read("page/page.html").partition("@DATA@")
    head = head.replace("@LANGUAGE@", language or "en")
    head = head.replace("@STYLE_HASH@", _hash(style)).replace("@SCRIPT_HASH@", _hash(code)).replace("@STYLE@", style)
    file.write(head.replace("@TITLE@", html.escape(title)))
    _column(file, "description", "json", packed_text(description))
    for group, columns, names in (
        ("call", content.merged.calls, (*CALL_COLUMNS, "index")),
        ("row", content.merged.rows, (*ROW_COLUMNS, *ROW_NUMBERS)),
    ):
        for name in names:
            base = columns.get(f"{name[:-1]}a") if name.endswith("_b") and description["two"] else None
            column = columns[name]
            is_changed = base is not None and base.typecode == column.typecode and len(base) == len(column)
            _column(file, f"{group}-{name}", f"{column.typecode}{'^' if is_changed else ''}", packed(column, base))
    file.write(rest.replace("@SCRIPT@", code))


def _column(file: IO[str], name: str, kind: str, letters: str) -> None:
    file.write(f'<script type="text/plain" id="data-{name}" data-kind="{kind}">{letters}</script>\n')


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
