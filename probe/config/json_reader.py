# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads JSON. Every mistake is a SettingsError that names the line and the remedy. YAML shares its limits and words."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from probe.config.messages import shorten
from probe.errors import SettingsError
from probe.findings.sentence import Sentence, say
from probe.findings.system import foreign

#: most lists and objects in each other; Python's own limit may be set so high that it crashes
DEEPEST = 100
TOO_DEEP = say("settings.too_deep", count=DEEPEST)
#: longest whole number, in digits, that stays one: Python refuses 4,301 digits, and no setting needs 20
_LONGEST_NUMBER = 300

#: a text, with the colon that makes it a key, or a bracket
_TOKENS = re.compile(r'"(?P<key>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?|[][{}]', re.DOTALL)
#: mistakes that have a remedy, as the text from the last comma before the error on
_MISTAKES = re.compile(
    r"(?P<comma>,)\s*[]}]|[,\s]*(?:(?P<comment>//|/\*|\#)|(?P<word>True|False|None)|(?P<backslash>\\)"
    "|(?P<quote>['`\u2018-\u201f\u00ab\u00bb])|(?P<wide>[\uff0c\uff1a\uff3b\uff3d\uff5b\uff5d\uff02]))"
)
#: the other words of Python's decoder
_SYNTAX = {
    "Expecting value": "settings.json_value",
    "Expecting property name enclosed in double quotes": "settings.json_name",
    "Expecting ',' delimiter": "settings.json_comma",
    "Expecting ':' delimiter": "settings.json_colon",
    "Unterminated string starting at": "settings.json_text",
    "Invalid control character at": "settings.json_control",
    "Extra data": "settings.json_extra",
}


def parse(text: str) -> Any:
    """Return the value that a JSON text stands for; raise SettingsError naming the line."""
    _refuse_deep_and_duplicate(text)
    try:
        return json.loads(text, parse_int=whole_number)
    except json.JSONDecodeError as error:
        raise _remedied(text, error) from error


def whole_number(digits: str) -> int | float:
    """Return a whole number. One with more digits than any setting takes is a float, which every setting refuses."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float(digits)


def mistake(before: str, problem: Sentence) -> SettingsError:
    """Return the error for a place in a file, given the text before it."""
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return SettingsError(say("settings.line", line=line, column=column, problem=problem))


def duplicate(key: object, first_line: int) -> Sentence:
    """Return the message about a key that one object has twice."""
    return say("settings.duplicate", key=shorten(key), line=first_line)


def _remedied(text: str, error: json.JSONDecodeError) -> SettingsError:
    """Return a syntax error with its remedy."""
    before = text[: error.pos].rstrip()
    after_comma = before.endswith(",") and not error.msg.startswith(
        "Invalid"
    )  # which is inside a text
    match = _MISTAKES.match(text, len(before) - 1 if after_comma else error.pos)
    if match is None or match.lastgroup is None:
        key = _SYNTAX.get(error.msg)
        return mistake(text[: error.pos], say(_SYNTAX[error.msg]) if key else foreign(error.msg))
    found = match[match.lastgroup]
    return mistake(text[: match.start(match.lastgroup)], _remedy(match.lastgroup, found))


def _remedy(kind: str, found: str) -> Sentence:
    """Return what to write in place of a mistake, whose kind is a group of ``_MISTAKES``."""
    if kind == "comma":
        return say("settings.comma")
    if kind == "comment":
        return say("settings.comment")
    if kind == "word":
        return say("settings.word", found=found)
    if kind == "backslash":
        return say("settings.backslash")
    if kind == "quote":
        return say("settings.quote", found=found)
    return say("settings.wide", found=found, ascii=unicodedata.normalize("NFKC", found))


def _refuse_deep_and_duplicate(text: str) -> None:
    """Raise for deep nesting, and for the first key that one object has twice."""
    levels: list[dict[str, int]] = [{}]
    for match in _TOKENS.finditer(text):
        if match[0] in "[{":
            levels.append({})
        elif match[0] in "]}":
            levels = levels[:-1] or [{}]  # a wrong text may close more than it opens
        elif match["colon"]:
            first = levels[-1].setdefault(match["key"], match.start())
            if first != match.start():
                raise mistake(
                    text[: match.start()], duplicate(match["key"], text.count("\n", 0, first) + 1)
                )
        if len(levels) - 1 > DEEPEST:
            raise mistake(text[: match.start()], TOO_DEEP)
