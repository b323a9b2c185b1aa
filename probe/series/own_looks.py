# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rules that keep numbers of their own. One is made for each series; ``look`` is its function of the table."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Protocol

from probe.findings.sentence import NOTHING, Sentence, say
from probe.series.history import LEAST_STEPS, WINDOW, History, Now
from probe.series.looks import is_rough

#: so many values are a median of a loss
_MEDIAN_OF = 10
#: a weight is compared with that of so many values before
_APART = 10
#: growth from one value to the next, of a weight that drifts; one that grows by equal steps from zero on stays below
_DRIFT = 1.15
#: how many times faster than the sum of the learning rates it grows then
_FASTER = 1.05


class OwnLook(Protocol):
    """A rule for one series."""

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value; ``history`` has the last ones, ``limit`` is the threshold."""


class Drifting:
    """A weight so many times that of ten values before, and no longer slow.

    Its growth is not explained by the sum of the learning rates so far: in a warm-up, and in the first steps, a
    weight that begins small grows as this sum. A weight that was zeros a moment ago has no size of its own yet, as
    that of an adapter.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._paths: deque[float] = deque(maxlen=_APART)  # the sums at the last values

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        if not math.isfinite(value):  # the history does not take it
            return NOTHING
        paths = list(self._paths)
        self._paths.append(now.path)
        if min(len(paths), len(history.recent)) < _APART or not min(history.recent):
            return NOTHING
        before = history.recent[-_APART]
        is_far = value >= limit * before and value * paths[0] >= before * now.path
        last = history.last
        is_fast = value >= _DRIFT * last and value * paths[-1] >= _FASTER * last * now.path
        if not (is_far and is_fast):
            return NOTHING
        return say(self._key, value=value, before=before, step=now.step)


class Rising:
    """A loss whose median left its lowest."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._lowest = math.inf  # of the medians so far

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        if len(history.recent) < _MEDIAN_OF or not math.isfinite(value):
            return NOTHING
        middle = statistics.median(history.ending(_MEDIAN_OF, value))
        lowest = self._lowest
        self._lowest = min(lowest, middle)
        least = history.first if is_rough(history.recent) else 0.5 * history.first
        if not 0 < limit * lowest < middle or not middle > least:
            return NOTHING
        return say(self._key, value=middle, lowest=lowest, step=now.step)


class Stuck:
    """A loss that turns no more."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._past: deque[float] = deque(maxlen=3 * WINDOW)  # the values so far

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        self._past.append(value)
        if len(self._past) < 3 * WINDOW:
            return NOTHING
        past = list(self._past)
        rises = [x < y for x, y in zip(past, past[1:])]
        turns = [x != y for x, y in zip(rises, rises[1:])]
        turned = sum(turns[1 - WINDOW :])
        before = sum(turns[: 1 - WINDOW])
        sizes = [abs(y - x) for x, y in zip(past, past[1:])]
        last_size = statistics.median(sizes[1 - WINDOW :])
        is_calm = 4 * last_size < statistics.median(sizes[: 1 - WINDOW])
        if turned > limit or before < WINDOW or not is_calm:
            return NOTHING
        counts = {"turns": turned, "count": WINDOW, "before": before, "long": 2 * WINDOW}
        return say(self._key, **counts, step=now.step)


class DeadUnits:
    """An activation that is zero in five steps. Without a count it is known of a relu whose largest output is zero."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._streak = 0  # the steps in a row in which it is zero

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        at = now.point
        is_zero_relu = "relu" in history.kinds and at.zeros is None and at.highest <= 0 and at.size
        known = 1.0 if is_zero_relu else at.zeros or 0.0
        self._streak = self._streak + 1 if known > limit else 0
        if self._streak != LEAST_STEPS:
            return NOTHING
        return say(self._key, value=known, count=LEAST_STEPS)


class Swollen:
    """A number above a limit, and four times the lowest that was measured."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._lowest = math.inf  # of the values so far

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        self._lowest = min(self._lowest, history.recent[0])
        lowest = self._lowest
        holds = value >= max(limit, 4 * lowest)
        return say(self._key, value=value, lowest=lowest, step=now.step) if holds else NOTHING


class FallenScale:
    """A loss scale that fell: below 1, or so many times at once, or after it stood still.

    Before that a scaler looks for its scale: it begins with a large one, and takes a smaller one after each overflow.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._still = 0  # values in a row that did not fall
        self._is_found = (
            False  # whether so many values in a row did not fall that the scaler has its scale
        )

    def look(self, history: History, value: float, limit: float, now: Now) -> Sentence:
        """Look at one value."""
        before = history.last
        self._still = self._still + 1 if value >= before else 0
        self._is_found = self._is_found or self._still >= WINDOW
        highest = max(history.recent)
        has_fallen = self._is_found and value * limit <= highest
        if value < 1 <= highest or value * limit <= before or has_fallen:
            return say(self._key, value=value, highest=highest, step=now.step)
        return NOTHING
