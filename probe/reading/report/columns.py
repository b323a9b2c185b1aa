# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The columns of a report, of texts and numbers, packed for the page."""

from __future__ import annotations

import base64
import gzip
import json
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Union

#: stands for a number that the dump does not have: the smallest one of each kind
MISSING_SINGLE = 2.0**-149
MISSING_DOUBLE = 5e-324
_LARGEST = 3.4028234e38
_SMALLEST = 2e-45
_LEVEL = 6
Column = Union["array[int]", "array[float]"]


class Texts:
    """A table of texts, each once; a column holds their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """Return the number of a text; -1 for None."""
        return -1 if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Iterable[str]) -> list[int]:
        """Return the numbers of texts, with -1 as the last: the number of none."""
        return [*map(self.number, texts), -1]

    def __iter__(self) -> Any:
        return iter(self._numbers)


def single(values: Iterable[float | None]) -> array[float]:
    """Return numbers with half the digits, where that is enough for the page; else with all.

    >>> single([1.0, None]).typecode, single([1e300]).typecode
    ('f', 'd')
    """
    given = [MISSING_DOUBLE if value is None else value for value in values]
    for value in given:
        size = value if value >= 0.0 else -value
        if (_LARGEST < size < math.inf) or (MISSING_DOUBLE < size < _SMALLEST):
            return array("d", given)
    return array("f", [MISSING_SINGLE if value == MISSING_DOUBLE else value for value in given])


def doubled(numbers: array[float]) -> array[float]:
    """Return numbers with all digits; those that are missing stay so."""
    if numbers.typecode == "d":
        return numbers
    return array("d", [MISSING_DOUBLE if value == MISSING_SINGLE else value for value in numbers])


def joined(parts: Sequence[array[Any]]) -> array[Any]:
    """Return columns one after another; numbers get as many digits as the most exact needs."""
    if not parts:
        return array("i")
    if len({part.typecode for part in parts}) > 1:
        parts = [doubled(part) for part in parts]
    whole = array(parts[0].typecode)
    for part in parts:
        whole.extend(part)
    return whole


def packed_text(value: Any) -> str:
    """Return a value as JSON, compressed, in letters."""
    letters = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _letters(letters.encode("utf-8", "backslashreplace"))


def packed(column: array[Any], base: array[Any] | None = None) -> str:
    """Return a column, compressed, in letters; of a nearly equal ``base`` only the bits that differ are kept."""
    content = _little(column)
    if base is not None and is_like(column, base):
        own_bits = int.from_bytes(content, "little")
        other_bits = int.from_bytes(_little(base), "little")
        content = (own_bits ^ other_bits).to_bytes(len(content), "little")
    # the n-th bytes of all numbers stand together: they are more alike
    size = column.itemsize
    planes = [content[place::size] for place in range(size)]
    return _letters(b"".join(planes))


def is_like(column: array[Any], base: array[Any]) -> bool:
    """Return whether a column can be kept as its difference from another one."""
    return base.typecode == column.typecode and len(base) == len(column)


def _little(column: array[Any]) -> bytes:
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def _letters(content: bytes) -> str:
    compressed = gzip.compress(content, _LEVEL, mtime=0)
    return base64.b64encode(compressed).decode("ascii")
