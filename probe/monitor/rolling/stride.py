# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How many steps a round has: given, or adapted so that a step costs no more than its budget."""

from __future__ import annotations

import math
import statistics
from collections import deque

_BARE = 5  # bare steps before the first round, which are measured
_WINDOW = 40  # steps after which the number is looked at again
_FIRST = 200  # the number of steps of a round until the price is known
_LEAST = 2
_MOST = 100_000
_CHANGE = 1.25  # a smaller change of the number is none


class Stride:
    """Decides how many steps a round has, and which steps are bare: these are measured, beside those that record.

    Args:
        every: the setting ``rolling``, or None where the budget decides.
        budget: the greatest part of a bare step that recording may cost, or None.
    """

    def __init__(self, every: int | None, budget: float | None) -> None:
        self.every = every or _FIRST
        self._budget = budget
        self._bare: deque[float] = deque(maxlen=_WINDOW)
        self._own: deque[float] = deque(maxlen=_WINDOW)
        self._count = 0

    @property
    def is_adapted(self) -> bool:
        """Whether the number of steps follows from the budget."""
        return self._budget is not None

    def is_bare(self, step: int) -> bool:
        """Return whether a step records nothing, so that its time is that of a bare one."""
        return self.is_adapted and (len(self._bare) < _BARE or step % 20 == 0)

    def take(self, seconds: float, is_bare: bool) -> int | None:
        """Take the time of a step; return the new number of steps of a round if it changes."""
        if self._budget is None:
            return None
        (self._bare if is_bare else self._own).append(seconds)
        self._count += 1
        if self._count % _WINDOW or len(self._own) < _WINDOW // 2:
            return None
        bare = statistics.median(self._bare)
        price = (statistics.fmean(sorted(self._own)[: -_WINDOW // 8]) - bare) / bare
        wanted = self.every * max(price, 1e-4) / self._budget
        wanted = min(max(wanted, self.every / 4, _LEAST), self.every * 4, _MOST)
        if 1 / _CHANGE < wanted / self.every < _CHANGE:
            return None
        self.every = math.ceil(wanted)
        self._own.clear()
        return self.every
