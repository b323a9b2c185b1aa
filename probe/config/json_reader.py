# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads JSON. Every mistake is a SettingsError that names the line and the remedy. YAML shares its limits and words."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from probe.config.messages import shorten
from probe.errors import SettingsError

#: most lists and objects in each other; Python's own limit may be set so high that it crashes
DEEPEST = 100
TOO_DEEP = f"nested too deeply, in more than {DEEPEST} levels."
#: longest whole number, in digits, that stays one: Python refuses 4,301 digits, and no setting needs 20
_LONGEST_NUMBER = 300

#: a text, with the colon that makes it a key, or a bracket
_TOKENS = re.compile(r'"(?P<key>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?|[][{}]', re.DOTALL)
#: mistakes that have a remedy, as the text from the last comma before the error on
_MISTAKES = re.compile(
    r"(?P<comma>,)\s*[]}]|[,\s]*(?:(?P<comment>//|/\*|\#)|(?P<word>True|False|None)|(?P<backslash>\\)"
    "|(?P<quote>['`\u2018-\u201f\u00ab\u00bb])|(?P<wide>[\uff0c\uff1a\uff3b\uff3d\uff5b\uff5d\uff02]))"
)
_REMEDIES = {
    "comma": "a comma after the last item. Remove the comma.",
    "comment": "JSON has no comments. Remove it, or use a .yaml file, in which # begins a comment.",
    "word": "{found} is not JSON. Write true, false or null.",
    "backslash": "a single backslash. Write two backslashes, or / in a path.",
    "quote": '{found} is not a quote of JSON. Put texts and keys in double quotes: "task".',
    "wide": "{found} is a full-width character. Write {ascii} instead.",
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


def mistake(before: str, problem: str) -> SettingsError:
    """Return the error for a place in a file, given the text before it."""
    line = before.count("\n") + 1
    column = len(before) - before.rfind("\n")
    return SettingsError(f"line {line}, column {column}: {problem}")


def duplicate(key: object, first_line: int) -> str:
    """Return the message about a key that one object has twice."""
    return f"duplicate key {shorten(key)}, first in line {first_line}. Remove one of the two."


def _remedied(text: str, error: json.JSONDecodeError) -> SettingsError:
    """Return a syntax error with its remedy, or with the decoder's own message."""
    before = text[: error.pos].rstrip()
    after_comma = before.endswith(",") and not error.msg.startswith(
        "Invalid"
    )  # which is inside a text
    match = _MISTAKES.match(text, len(before) - 1 if after_comma else error.pos)
    if match is None or match.lastgroup is None:
        return mistake(text[: error.pos], error.msg)
    found = match[match.lastgroup]
    remedy = _REMEDIES[match.lastgroup].format(
        found=found, ascii=unicodedata.normalize("NFKC", found)
    )
    return mistake(text[: match.start(match.lastgroup)], remedy)


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
