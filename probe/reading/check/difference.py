# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One difference of two runs, and the words that all kinds share."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from probe.reading.dumps.text import safe, shorten


class Importance(enum.IntEnum):
    """The kinds of differences; the first explains most."""

    PARAMETERS = 1
    DATA = 2
    STRUCTURE = 3
    OPTIMIZER = 4
    SEEDS = 5
    CIRCUMSTANCES = 6


class Difference(NamedTuple):
    """One difference.

    Attributes:
        importance: its kind.
        subject: the thing that differs: "parameters", "note config.lr".
        sentence: how it differs.
        ranks: the ranks that have it; empty where there is one.
    """

    importance: Importance
    subject: str
    sentence: str
    ranks: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        """Return it on one line."""
        said = f" (ranks {listed(map(str, self.ranks))})" if len(self.ranks) > 1 else ""
        return shorten(safe(f"{self.subject}: {self.sentence}"), 230) + said


def listed(items: Iterable[str], most: int = 3, word: str = "") -> str:
    """Return the first items of a list as a text.

    >>> listed("abcde")
    'a, b, c and 2 more'
    """
    found = list(items)
    rest = f" and {len(found) - most} more{word}" if len(found) > most else ""
    return ", ".join(found[:most]) + rest


def pair(a: Any, b: Any) -> str:
    """Return two values beside each other.

    >>> pair(0.1, None), pair([2, 3], "x")
    ('0.1 / none', '[2, 3] / x')
    """
    return f"{_value(a)} / {_value(b)}"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return shorten(safe(text), 60) if text else '""'


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two values of JSON are equal; true is not 1, and NaN is NaN.

    >>> are_equal(1, 1.0), are_equal(True, 1), are_equal(float("nan"), float("nan"))
    (True, False, True)
    """
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124


def only(names: Sequence[str], side: str) -> str:
    """Return which names only one side has."""
    return f"only in {side}: {listed(names)}"
