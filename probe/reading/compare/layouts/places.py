# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The values of an entry by their places, and an entry with other values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probe.reading.dumps.entry_view import WORDS
from probe.reading.dumps.values import MAX_DEPTH, Leaf, is_tensor, leaves

#: parts of an entry that a call is given
GIVEN = ("input", "kwargs", "parameters")


def values(entry: Any) -> Iterator[Leaf]:
    """Yield (place, value) of every value in an entry, as rows of a comparison name the places.

    >>> record = {"type": "mindspore.Tensor"}
    >>> [place for place, _ in values({"input_args": [record], "input_kwargs": {}, "output": [None, [record]]})]
    ['input.0', 'output.0', 'output.1.0']
    >>> [place for place, _ in values({"weight": [record]})]
    ['weight.0']
    """
    if is_tensor(entry):
        yield "0", entry
    elif _has_parts(entry):
        for key, part in entry.items():
            if key in WORDS:
                for place, leaf in leaves(part):
                    yield f"{WORDS[key]}.{place}", leaf
    else:
        yield from leaves(entry)


def with_values(entry: Any, other: Mapping[str, Any]) -> Any:
    """Return an entry with other values at some places.

    >>> with_values({"output": [1, 2]}, {"output.1": 5})
    {'output': [1, 5]}
    """
    if is_tensor(entry):
        return other.get("0", entry)
    if _has_parts(entry):
        return {key: _with(part, WORDS[key], other) if key in WORDS else part for key, part in entry.items()}
    return _with(entry, "", other)


def _has_parts(entry: Any) -> bool:
    return type(entry) is dict and any(key in WORDS for key in entry)


def _with(part: Any, above: str, other: Mapping[str, Any], depth: int = MAX_DEPTH) -> Any:
    if above in other:
        return other[above]
    if not depth or (type(part) is dict and type(part.get("type")) is str):
        return part
    start = f"{above}." if above else ""
    if type(part) is list:
        return [_with(item, f"{start}{place}", other, depth - 1) for place, item in enumerate(part)]
    if type(part) is dict:
        return {key: _with(item, f"{start}{key}", other, depth - 1) for key, item in part.items()}
    return part
