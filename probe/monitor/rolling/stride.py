# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How many steps a round has: given, or adapted so that records cost no more than their budget."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import NamedTuple

#: so many steps of a round record, about: patches and hooks cost the same for one call as for thirty
RECORDING = 6
_FIRST = 100  # the number of steps of a round until the price is known
_LEAST = 2
_MOST = 100_000
_CHANGE = 1.15  # a smaller change of the number is none
_FASTEST = 4.0  # the most by which the number changes at once
_FEW = 5  # so many steps without records tell the time of a bare one
_KEPT = 15
_APART = 20  # of the steps without records, where each step would have some
_AIM = 0.85  # of the budget: a step has costs that no clock of ours sees
_DISTURBED = 3.0  # a price so many times the next lower one has another reason, as a checkpoint
_SPARE = 0.1  # the part of a budget that is left for records, even where the rest costs more


def apart(every: int) -> int:
    """Return how far apart the steps are that record, in a round of so many steps.

    >>> apart(10), apart(50), apart(1000)
    (1, 8, 166)
    """
    return max(1, every // RECORDING)


class StepTimes(NamedTuple):
    """The times of a step, in seconds."""

    seconds: float  # of the step
    inside: float  # our own in it, outside of calls of the training
    overhead: float  # our own since the end of the step before, outside of calls of the training
    is_recorded: bool


class Stride:
    """Decides how many steps a round has. A step that records is compared with those before it that do not.

    Args:
        every: the setting ``rolling``, or None where the budget decides.
        budget: the greatest part of a bare step's time that records may cost, or None.
    """

    def __init__(self, every: int | None, budget: float | None) -> None:
        self.every = every or _FIRST
        self._budget = budget
        self._bare: deque[float] = deque(maxlen=_KEPT)  # seconds of steps without records
        self._overheads: deque[float] = deque(maxlen=_KEPT)  # our own seconds in such steps
        self._prices: list[float] = []  # seconds of records, in the steps of rounds like this one

    def is_bare(self, step: int) -> bool:
        """Return whether a step records nothing so that its time is known."""
        if self._budget is None or apart(self.every) > 1:
            return False
        return len(self._bare) < _FEW or step % _APART == 0

    def take(self, times: StepTimes) -> int | None:
        """Take the times of a step; return the new number of steps if it changes."""
        if self._budget is None:
            return None
        if not times.is_recorded:
            self._bare.append(times.seconds - times.inside)
            self._overheads.append(times.overhead)
        elif len(self._bare) >= _FEW:
            self._prices.append(times.seconds - statistics.median(self._bare))
        if len(self._prices) < RECORDING:
            return None
        wanted = self._wanted(self._budget)
        self._prices = []
        if 1 / _CHANGE < wanted / self.every < _CHANGE:
            return None
        self.every = wanted
        return wanted

    def _wanted(self, budget: float) -> int:
        bare = statistics.median(self._bare)
        overhead = statistics.median(self._overheads)
        price = max(_price(self._prices), 1e-4 * bare)
        allowed = max(_AIM * budget * bare - overhead, _SPARE * budget * bare)
        every = self.every * price / apart(self.every) / allowed
        every = min(max(every, self.every / _FASTEST), self.every * _FASTEST)
        return math.ceil(min(max(every, _LEAST), _MOST))


def _price(prices: list[float]) -> float:
    """Return the mean price of records, without that of a step that something else made long.

    One step of a round may have more costly calls than the others, so a price is not left out for being the highest.
    """
    *others, highest = sorted(prices)
    return statistics.fmean(others if highest > _DISTURBED * others[-1] else prices)
