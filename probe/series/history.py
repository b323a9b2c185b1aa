# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Facts that a rule looks at: the last values of a series, and the circumstances of a step."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from probe.findings.sentence import Sentence

LEAST_STEPS = 5  # fewer steps than these are no series
WINDOW = 20


class Point(NamedTuple):
    """Further numbers of a tensor in one step of a dump."""

    size: int = 0  # the number of its elements
    zeros: float | None = None  # the part of them that is zero; None where that is unknown
    peak: float = 0.0  # the largest absolute value by the largest number of a 16-bit dtype; 0.0 for other dtypes
    highest: float = 0.0  # Max


class Now(NamedTuple):
    """The circumstances of a step."""

    step: int
    #: the part of the first loss that is left: where all is learnt, gradients are small
    learnt: float = 1.0
    floor: float = 0.0  # smaller updates are rounding
    is_learning: bool = False  # the loss is below half of the median of its last values
    path: float = 0.0  # the sum of the learning rates of all steps so far
    point: Point = Point()  # further numbers of the tensor, in a dump


class History:
    """The last values of one series of one kind, of a dump several."""

    __slots__ = (
        "active",
        "count",
        "first",
        "highest",
        "kinds",
        "last",
        "last_step",
        "recent",
        "warm",
    )

    def __init__(
        self, kinds: str | frozenset[str], keep: int | None = WINDOW, warm: int = WINDOW
    ) -> None:
        self.kinds = kinds
        self.warm = warm
        self.count = 0
        self.recent: deque[float] = deque(maxlen=keep)  # None keeps all
        self.first = math.nan  # the median of the first ``warm`` values
        self.last = math.nan
        self.highest = 0.0  # the highest of the values before the last five
        self.last_step = -1
        #: key of a sentence -> the last step in which its rule held
        self.active: dict[str, float] = {}

    @property
    def median(self) -> float:
        """The median of the last values."""
        return statistics.median(self.recent) if self.recent else math.nan

    def take(self, step: int, value: float) -> None:
        """Add a finite value."""
        recent = self.recent
        if self.count >= LEAST_STEPS and recent[-LEAST_STEPS] > self.highest:
            self.highest = recent[-LEAST_STEPS]
        recent.append(value)
        self.count += 1
        self.last = value
        self.last_step = step
        if self.count == self.warm:
            self.first = self.median

    def restart(self) -> None:
        """Begin anew behind a gap; the first values stay."""
        self.recent.clear()
        self.count = 0
        self.warm = -1

    def ending(self, count: int, value: float) -> list[float]:
        """Return the last values, of which ``value`` is the newest."""
        return [*list(self.recent)[1 - count :], value]


#: takes the history, the value, the threshold and the circumstances; returns a sentence if the rule holds
Look = Callable[[History, float, float, Now], Sentence]
