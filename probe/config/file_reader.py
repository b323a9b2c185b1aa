# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Reads a JSON or YAML file. Every mistake in it is a SettingsError that names the line and the remedy."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from probe.config.messages import long_number, printable, shorten
from probe.errors import SettingsError

#: the endings of file names that say how a file is read
ENDINGS = (".json", ".yaml", ".yml")
#: largest file that is read, in bytes
_LARGEST = 10_000_000
#: most lists and objects in each other; Python's own limit may be set so high that it crashes
DEEPEST = 100
#: longest whole number that is converted, in digits; Python refuses 4,301 of them, and no setting needs 20
_LONGEST_NUMBER = 300
_EMPTY = "the file is empty. Write {} for a file without keys."
#: nouns for values of JSON and YAML
_KINDS = {list: "list", str: "text", bool: "boolean", int: "number", float: "number", type(None): "null"}


class LongNumber:
    """Stands for a whole number with more digits than any setting takes. Every validator refuses it."""

    def __init__(self, digits: int) -> None:
        self._digits = digits

    def __repr__(self) -> str:
        return long_number(self._digits)


def whole_number(text: str) -> int | LongNumber:
    """Return the number that a text in decimal notation stands for."""
    return int(text) if len(text) <= _LONGEST_NUMBER else LongNumber(len(text.lstrip("+-")))


def read_bytes(key: str, path: str) -> bytes:
    """Return the content of a file that a setting names.

    Raises:
        SettingsError: naming the setting and the file, when the file cannot be read or is too large.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except (OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise SettingsError(f"{key}: {printable(path)} cannot be read: {reason}") from error
    if len(data) > _LARGEST:
        raise SettingsError(f"{key}: {printable(path)} is larger than {_LARGEST // 1_000_000} MB")
    return data


def parse(data: bytes, is_json: bool) -> dict[Any, Any]:
    """Return the keys and values that a file holds.

    Args:
        data: the content of the file.
        is_json: whether it is JSON; otherwise it is YAML.

    Raises:
        SettingsError: naming the line and the remedy; the caller adds the file.
    """
    text = _decode(data)
    if not text.strip():
        raise SettingsError(_EMPTY)
    try:
        content = _parse_json(text) if is_json else _parse_yaml(text)
    except (RecursionError, MemoryError) as error:
        raise SettingsError("nested too deeply") from error
    if isinstance(content, dict):
        return content
    if content is None and not is_json:  # only comments
        raise SettingsError(_EMPTY)
    kind = _KINDS.get(type(content), "value")
    raise SettingsError(f"a {kind} is not allowed. Allowed: an object with keys and values.")


def mistake(line: int, column: int, problem: str) -> SettingsError:
    """Return the error for a place in a file; lines and columns count from 1."""
    return SettingsError(f"line {line}, column {column}: {problem}")


def too_deep(line: int) -> SettingsError:
    """Return the error for the value with which the nesting becomes too deep."""
    return SettingsError(f"line {line}: nested too deeply, in more than {DEEPEST} levels.")


def duplicate(key: object, line: int, first_line: int) -> SettingsError:
    """Return the error for a key that one object has twice."""
    return SettingsError(
        f"line {line}: duplicate key {shorten(key)}, first in line {first_line}. Remove one of the two."
    )


def _decode(data: bytes) -> str:
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        raise SettingsError(f"line 1: the file is encoded in {encoding[:6].upper()}. Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        guess = " The file may be encoded in GBK." if _is_gbk(data) else ""
        byte = error.object[error.start]
        raise SettingsError(f"line {line}: byte 0x{byte:02x} is not UTF-8.{guess} Save the file as UTF-8.") from error


def _is_gbk(data: bytes) -> bool:
    try:
        data.decode("gbk")
    except UnicodeDecodeError:
        return False
    return True


def _parse_yaml(text: str) -> Any:
    from probe.config import yaml_reader  # imports yaml, which readers of JSON do not need

    return yaml_reader.parse(text)


def _parse_json(text: str) -> Any:
    _refuse_deep(text)
    try:
        content = json.loads(text, parse_int=whole_number)
    except json.JSONDecodeError as error:
        place, problem = _json_mistake(text, error)
        line = text.count("\n", 0, place) + 1
        raise mistake(line, place - text.rfind("\n", 0, place), problem) from error
    _refuse_duplicates(text)
    return content


_BLANKS = " \t\r\n"
#: begins of the rest of a text that no JSON value has, and the remedy
_REMEDIES = {
    **dict.fromkeys(
        ("//", "/*", "#"), "JSON has no comments. Remove it, or use a .yaml file, in which # begins a comment."
    ),
    "True": "True is not JSON. Write true.",
    "False": "False is not JSON. Write false.",
    "None": "None is not JSON. Write null.",
}


def _json_mistake(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Return the place of a syntax error, and a text that says how to mend it."""
    place = len(text) - len(text[error.pos :].lstrip(_BLANKS))
    before, rest = text[:place].rstrip(_BLANKS), text[place:]
    if rest.startswith(",") and rest[1:].lstrip(_BLANKS).startswith(("]", "}")):  # Python 3.13 names the comma
        return place, "a comma after the last item. Remove the comma."
    if before.endswith(",") and rest.startswith(("]", "}")):
        return len(before) - 1, "a comma after the last item. Remove the comma."
    for begin, remedy in _REMEDIES.items():
        if rest.startswith(begin):
            return place, remedy
    remedy = _remedy_of_character(rest[:1]) if rest else ""
    if remedy:
        return place, remedy
    return error.pos, next((words for begin, words in _MESSAGES.items() if error.msg.startswith(begin)), error.msg)


def _remedy_of_character(character: str) -> str:
    """Return the remedy for a character that stands for one of JSON; empty for others."""
    ascii_character = unicodedata.normalize("NFKC", character)
    if ascii_character in ("'", "`") or unicodedata.category(character) in ("Pi", "Pf"):
        return f'{character} is not a quote of JSON. Put texts and keys in double quotes: "task".'
    if ascii_character != character and ascii_character in set(',:{}[]"'):
        return f"{character} is a full-width character. Write {ascii_character} instead."
    return ""


#: begins of the decoder's messages, and plainer words
_MESSAGES = {
    "Invalid \\escape": "a single backslash in a text. Write two backslashes, or / in a path.",
    "Invalid control character": 'a line break or tab inside a text. A closing " may be missing.',
    "Unterminated string": 'a text without its closing ".',
    "Expecting ',' delimiter": "a comma or a closing bracket is missing.",
    "Expecting ':' delimiter": "a colon is missing after the key.",
    "Expecting property name": "a key in double quotes is missing.",
    "Expecting value": "a value is missing.",
    "Extra data": "there is more after the end of the object. Remove it.",
}


_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]', re.DOTALL)


def _refuse_deep(text: str) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > DEEPEST:
            raise too_deep(text.count("\n", 0, match.start()) + 1)


#: a text, with the colon that makes it a key, or the begin or end of an object
_TOKENS = re.compile(r'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")(?P<colon>\s*:)?|[{}]')


def _refuse_duplicates(text: str) -> None:
    """Raise for the first key that one object of a correct JSON text has twice."""
    lines: list[dict[str, int]] = []
    for match in _TOKENS.finditer(text):
        if match[0] == "{":
            lines.append({})
        elif match[0] == "}":
            lines.pop()
        elif match["colon"]:
            key, line = json.loads(match["text"]), text.count("\n", 0, match.start()) + 1
            if key in lines[-1]:
                raise duplicate(key, line, lines[-1][key])
            lines[-1][key] = line
