# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One difference of two runs, and the facts that its sentence is made of."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import ENGLISH, Finding, Sentence, say
from probe.reading.dumps.text import safe, shorten


class Importance(enum.IntEnum):
    """The kinds of differences; the first explains most."""

    PARAMETERS = 1
    DATA = 2
    STRUCTURE = 3
    OPTIMIZER = 4
    SEEDS = 5
    CIRCUMSTANCES = 6


@dataclass(frozen=True)
class Difference(Finding):
    """One difference."""

    importance: Importance  # its kind
    #: the thing that differs: "parameters", "note config.lr"; a sentence where it has words
    subject: Sentence | str
    said: Sentence  # how it differs
    ranks: tuple[int | None, ...] = ()  # the ranks that have it; empty where there is one

    @property
    def line(self) -> Sentence:
        """Subject and sentence."""
        return say("check.line", subject=self.subject, said=self.said)

    def text(self, language: str) -> str:
        """Return it on one line."""
        line = shorten(safe(self.line.text(language)), 230)
        if not self.ranks:
            return line
        if len(self.ranks) == 1:
            return line + say("check.rank", rank=self.ranks[0]).text(language)
        return line + say("check.ranks", ranks=listed(self.ranks)).text(language)

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def to_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {
            **super().to_dict(),
            "importance": int(self.importance),
            "kind": self.importance.name.lower(),
            "subject": str(self.subject),
            "ranks": list(self.ranks),
        }


def listed(items: Iterable[Any], most: int = 3) -> Any:
    """Return the first items of a list, and how many more there are, as a fact.

    >>> str(say("check.values", values=listed("abcde")))
    'a, b, c and 2 more'
    """
    found = list(items)
    if len(found) <= most:
        return found
    return say("check.more", items=found[:most], count=len(found) - most)


def pair(a: Any, b: Any) -> Sentence:
    """Return two values beside each other.

    >>> str(pair(0.1, None)), str(pair([2, 3], "x"))
    ('0.1 / not set', '[2, 3] / x')
    """
    return both(json_fact(a), json_fact(b))


def both(a: Any, b: Any) -> Sentence:
    """Return two facts beside each other."""
    return say("check.pair", left=a, right=b)


def named(name: Any, values: Any) -> Sentence:
    """Return a name before its values."""
    return say("check.named", name=name, values=values)


def json_fact(value: Any) -> Any:
    """Return a value of JSON as a fact: a number where JSON and Python write it alike, else a text."""
    if value is None:
        return say("check.none")
    text = value if isinstance(value, str) else json.dumps(value)
    if not text:
        return '""'
    shown = shorten(safe(text), 60)
    is_number = isinstance(value, (int, float)) and str(value) == shown
    return value if is_number else shown


def are_equal(a: Any, b: Any) -> bool:
    """Return whether two values of JSON are equal; true is not 1, and NaN is NaN.

    >>> are_equal(1, 1.0), are_equal(True, 1), are_equal(float("nan"), float("nan"))
    (True, False, True)
    """
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124


def other_keys(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """Return the keys whose values differ in two objects of JSON, those of the first one first."""
    keys = {**left, **right}
    return [key for key in keys if not are_equal(left.get(key), right.get(key))]


def only(names: Iterable[Any], side: str, most: int = 3) -> Sentence:
    """Return which names only one side has."""
    return say("check.only", side=side, names=listed(names, most))
