# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Describes the shape of each file from outside, and checks values against it.

A description is a field's name -> the check of its value. A check returns what was found in place of the right type, or
NOTHING. A field that is missing is right: readers ask with ``get``. Fields without a description may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say

#: a value -> what it is, if that is wrong, else NOTHING
Check = Callable[[Any], Sentence]
Shape = Mapping[str, Check]

#: the number of a float has less than so many bits
_FLOAT_BITS = 1024
#: above every step, rank, length and index
_BEYOND = 1 << 63
_KINDS = {
    list: "door.list",
    dict: "door.object",
    str: "door.text",
    bool: "door.bool",
    type(None): "door.null",
    int: "door.whole",
    float: "door.number",
}
_SIGNED = ("", "negative_", "positive_")
_COUNTS = (
    "count",
    "nan_count",
    *(f"{sign}{kind}_count" for kind in ("inf", "zero") for sign in _SIGNED),
)


def kind_of(value: Any) -> Sentence:
    """Return what a value is, in words.

    >>> str(kind_of([])), str(kind_of({})), str(kind_of(None))
    ('a list', 'an object', 'null')
    """
    return say(_KINDS.get(type(value), "door.object"))


def number(value: Any) -> Sentence:
    """Check a number that a float can hold; null stands for one that is not known, a text for one of another tool.

    >>> [str(number(value)) for value in (1.5, True, None, [1], 10**400)]
    ['', '', '', 'a list', 'a number of 1329 bits']
    """
    kind = type(value)
    if kind is float or value is None or kind is bool or kind is str:
        return NOTHING
    if kind is int:
        return NOTHING if value.bit_length() < _FLOAT_BITS else _huge(value)
    return kind_of(value)


def _huge(value: int) -> Sentence:
    return say("door.bits", bits=value.bit_length())


def _kind(kind: type) -> Check:
    return lambda value: NOTHING if value is None or type(value) is kind else kind_of(value)


text, switch, mapping, items = map(_kind, (str, bool, dict, list))


def whole(value: Any) -> Sentence:
    """Check a whole number of the size of a step or a rank, or null.

    >>> [str(whole(value)) for value in (3, None, True, 3.0)]
    ['', '', 'true or false', 'a number']
    """
    if value is None:
        return NOTHING
    if type(value) is not int:
        return kind_of(value)
    return NOTHING if -_BEYOND < value < _BEYOND else _huge(value)


def lengths(value: Any) -> Sentence:
    """Check a shape, or null.

    >>> [str(lengths(value)) for value in ([2, 3], [-1], ["x"], [True], 3)]
    ['', 'a list with -1', 'a list with a text', 'a list with true or false', 'a whole number']
    """
    if value is None:
        return NOTHING
    if type(value) is not list:
        return kind_of(value)
    for length in value:
        if type(length) is not int:
            return say("door.list_with", item=kind_of(length))
        if not 0 <= length < _BEYOND:
            return say("door.list_with", item=length if length.bit_length() < 64 else _huge(length))
    return NOTHING


def texts(value: Any) -> Sentence:
    """Check a list of texts, or null."""
    if type(value) is not list:
        return items(value)
    wrong = [item for item in value if type(item) is not str]
    return say("door.list_with", item=kind_of(wrong[0])) if wrong else NOTHING


def objects_of(check: Check) -> Check:
    """Return the check of an object whose values pass a check; null passes too.

    >>> str(objects_of(text)({"Functional.relu.0.forward": [1]}))
    'an object with a list'
    """

    def found(value: Any) -> Sentence:
        if type(value) is not dict:
            return mapping(value)
        wrong = (kind for kind in map(check, value.values()) if kind)
        return next((say("door.object_with", item=kind) for kind in wrong), NOTHING)

    return found


#: the record of a tensor
RECORD: Shape = {
    "dtype": text,
    "shape": lengths,
    "data_name": text,
    "md5": text,
    "raised": text,
    **dict.fromkeys(("Max", "Min", "Mean", "Norm", *_COUNTS), number),
}
#: the keys beside "data" in dump.json and debug.json
HEADER: Shape = {
    "task": text,
    "level": text,
    "framework": text,
    "dump_data_dir": text,
    "run": mapping,
}
#: the records of a journal: its first, and the others
JOURNAL_HEAD: Shape = {"header": mapping, "extra_info": switch}
JOURNAL_ENTRY: Shape = {
    "name": text,
    "draft": switch,
    "stack": whole,
    "lines": texts,
    "construct": objects_of(text),
}


def groups(value: Any) -> Sentence:
    """Check the groups of an optimizer: objects that name their parameters."""
    if type(value) is not list:
        return items(value)
    return next(
        filter(None, (mapping(item) or texts((item or {}).get("parameters")) for item in value)),
        NOTHING,
    )


#: run.json, a parameter in it, its values or those of an input, the lines of run.jsonl, and the numbers in one
RUN: Shape = {
    **dict.fromkeys(("rank", "first_step"), whole),
    "cells": items,
    "command": texts,
    **dict.fromkeys(
        ("parameters", "cell_values", "packages", "versions", "context", "environment", "code"),
        mapping,
    ),
}
PARAMETER: Shape = {"cell": text, "trainable": switch, "values": mapping}
DESCRIBED: Shape = {
    "dtype": text,
    "shape": lengths,
    "crc": text,
    **dict.fromkeys(("sum", "Max", "Min", "Mean", "Norm"), number),
}
RUN_LINE: Shape = {
    "step": whole,
    "inputs": mapping,
    "optimizer": text,
    "numbers": mapping,
    "note": mapping,
    "updated": text,
    "crc": mapping,
    "evaluating": texts,
    "idle": texts,
    "outside": text,
    "parameters": texts,
    "model": text,
    "function": text,
    "names": texts,
    "arguments": mapping,
}
OPTIMIZER: Shape = {"parameters": texts, "groups": groups}


def wrong_fields(value: Mapping[str, Any], shape: Shape) -> list[tuple[str, Sentence]]:
    """Return the fields of an object that are of another type, each with what was found.

    >>> [(name, str(kind)) for name, kind in wrong_fields({"Max": [], "shape": [1], "other": {}}, RECORD)]
    [('Max', 'a list')]
    """
    found = [(name, check(value[name])) for name, check in shape.items() if name in value]
    return [(name, kind) for name, kind in found if kind]
