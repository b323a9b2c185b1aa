# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Describes the shape of each file from outside, and checks values against it.

A description is a field's name -> the check of its value. A check returns what was found in place of the right type, or
"". A field that is missing is right: readers ask with ``get``. Fields without a description may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: a value -> what it is, if that is wrong, else ""
Check = Callable[[Any], str]
Shape = Mapping[str, Check]

#: the number of a float has less than so many bits
_FLOAT_BITS = 1024
#: above every step, rank, length and index
_BEYOND = 1 << 63
_NAMES: dict[type, str] = {
    list: "a list", dict: "an object", str: "a text", bool: "true or false", type(None): "null", int: "a whole number",
    float: "a number",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """Return what a value is, in words.

    >>> kind_of([]), kind_of({}), kind_of(None)
    ('a list', 'an object', 'null')
    """
    return _NAMES.get(type(value), type(value).__name__)


def number(value: Any) -> str:
    """Check a number that a float can hold; null stands for one that is not known, a text for one of another tool.

    >>> number(1.5), number(True), number(None), number([1]), number(10**400)
    ('', '', '', 'a list', 'a number of 1329 bits')
    """
    kind = type(value)
    if kind is float or value is None or kind is bool or kind is str:
        return ""
    if kind is int:
        return "" if value.bit_length() < _FLOAT_BITS else f"a number of {value.bit_length()} bits"
    return kind_of(value)


def text(value: Any) -> str:
    """Check a text, or null."""
    return "" if value is None or type(value) is str else kind_of(value)


def whole(value: Any) -> str:
    """Check a whole number of the size of a step or a rank, or null.

    >>> whole(3), whole(None), whole(True), whole(3.0)
    ('', '', 'true or false', 'a number')
    """
    if value is None:
        return ""
    if type(value) is not int:
        return kind_of(value)
    return "" if -_BEYOND < value < _BEYOND else f"a number of {value.bit_length()} bits"


def switch(value: Any) -> str:
    """Check true or false, or null."""
    return "" if value is None or type(value) is bool else kind_of(value)


def lengths(value: Any) -> str:
    """Check a shape, or null.

    >>> lengths([2, 3]), lengths([-1]), lengths(["x"]), lengths([True]), lengths(3)
    ('', 'a list with -1', 'a list with a text', 'a list with true or false', 'a whole number')
    """
    if value is None:
        return ""
    if type(value) is not list:
        return kind_of(value)
    for length in value:
        if type(length) is not int:
            return f"a list with {kind_of(length)}"
        if not 0 <= length < _BEYOND:
            return f"a list with {length if length.bit_length() < 64 else 'a huge number'}"
    return ""


def mapping(value: Any) -> str:
    """Check an object, or null."""
    return "" if value is None or type(value) is dict else kind_of(value)


def texts(value: Any) -> str:
    """Check a list of texts, or null."""
    if value is None:
        return ""
    if type(value) is not list:
        return kind_of(value)
    return next((f"a list with {kind_of(item)}" for item in value if type(item) is not str), "")


def parents(value: Any) -> str:
    """Check an object of texts and nulls, as construct.json has them."""
    if value is None:
        return ""
    if type(value) is not dict:
        return kind_of(value)
    return next((f"an object with {kind_of(item)}" for item in value.values() if text(item)), "")


_SIGNED = ("", "negative_", "positive_")
_COUNTS = ("count", "nan_count", *(f"{sign}{kind}_count" for kind in ("inf", "zero") for sign in _SIGNED))
#: the record of a tensor
RECORD: Shape = {
    "dtype": text, "shape": lengths, "data_name": text, "md5": text, "raised": text,
    **dict.fromkeys(("Max", "Min", "Mean", "Norm", *_COUNTS), number),
}  # fmt: skip
#: the keys beside "data" in dump.json and debug.json
HEADER: Shape = {"task": text, "level": text, "framework": text, "dump_data_dir": text, "run": mapping}
#: the records of a journal: its first, and the others
JOURNAL_HEAD: Shape = {"header": mapping, "extra_info": switch}
JOURNAL_ENTRY: Shape = {"name": text, "draft": switch, "stack": whole, "lines": texts, "construct": parents}
#: run.json, the description of a parameter in it, and the lines of run.jsonl
RUN: Shape = {
    **dict.fromkeys(("rank", "world_size", "seed", "first_step"), whole),
    **dict.fromkeys(("dump_path", "device", "mindspore", "probe", "host", "python", "commit"), text),
    **dict.fromkeys(("parameters", "cell_values", "packages", "context", "environment", "files", "layout"), mapping),
    "command": texts,
}
DESCRIBED: Shape = {"dtype": text, "shape": lengths, "crc": text, "sum": whole, "layout": mapping}
PARAMETER: Shape = {"cell": text, "trainable": switch, "values": mapping}
RUN_LINE: Shape = {"step": whole, "inputs": mapping, "optimizer": text, "numbers": mapping, "note": mapping}
#: the head of a section of series.bin, and the lines of alarms.jsonl
SERIES: Shape = {"names": texts}
ALARM: Shape = {"rule": text, "series": text, "step": whole, "sentence": text, "key": text, "facts": mapping}


def wrong_fields(value: Mapping[str, Any], shape: Shape) -> list[tuple[str, str]]:
    """Return the fields of an object that are of another type, each with what was found.

    >>> wrong_fields({"Max": [], "shape": [1], "other": {}}, RECORD)
    [('Max', 'a list')]
    """
    found = [(name, check(value[name])) for name, check in shape.items() if name in value]
    return [(name, kind) for name, kind in found if kind]
