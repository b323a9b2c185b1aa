# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The functions of the rules: each looks at one value of a series, and at the values before.

The table binds their first arguments: the key of the sentence, and the conditions that differ between dumps, which have
few steps, and the monitor, which has all.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say

LEAST_STEPS = 5  # fewer steps than these are no series
WINDOW = 20
_Z = 6.0  # robust z of a spike in each step
_SMALL = 0.1  # so small a part of the first loss is no spike: a batch that is hard when nearly all is learnt
_ROUGH = 0.7  # a loss whose logarithm changes so much from one step to the next is that of single samples
#: growth in ten steps, of a weight that drifts; a weight that grows by equal steps from zero on stays below
_DRIFT = 1.15


class Point(NamedTuple):
    """Further numbers of a tensor in one step of a dump."""

    size: int = 0  # the number of its elements
    zeros: float | None = None  # the part of them that is zero; None where that is unknown
    peak: float = 0.0  # the largest absolute value by the largest number of a 16-bit dtype; 0.0 for other dtypes
    highest: float = 0.0  # Max


class Now(NamedTuple):
    """The circumstances of a step."""

    step: int
    learnt: float = (
        1.0  # the part of the first loss that is left: where all is learnt, gradients are small
    )
    floor: float = 0.0  # smaller updates are rounding
    point: Point = Point()  # further numbers of the tensor, in a dump


class History:
    """The last values of one series of one kind, of a dump several."""

    __slots__ = (
        "active", "count", "first", "highest", "kinds", "last", "last_step", "lowest", "past", "recent", "streak",
        "warm",
    )  # fmt: skip

    def __init__(
        self, kinds: str | frozenset[str], keep: int | None = WINDOW, warm: int = WINDOW
    ) -> None:
        self.kinds = kinds
        self.warm = warm
        self.count = 0
        self.streak = 0
        self.past: deque[float] = deque(maxlen=3 * WINDOW)  # for ``stuck``
        self.recent: deque[float] = deque(maxlen=keep)  # None keeps all
        self.first = math.nan  # the median of the first ``warm`` values
        self.last = math.nan
        # the highest of the values before the last five
        self.lowest = math.inf
        self.highest = 0.0
        self.last_step = -1
        self.active: dict[
            str, float
        ] = {}  # key of a sentence -> the last step in which its rule held

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

    def ending(self, count: int, value: float) -> list[float]:
        """Return the last values, of which ``value`` is the newest."""
        return [*list(self.recent)[1 - count :], value]


#: takes the history, the value, the threshold and the circumstances; returns a sentence if the rule holds
Look = Callable[[History, float, float, Now], Sentence]


def is_far(value: float, others: Sequence[float], limit: float) -> bool:
    """Return whether a logarithm is above others by a robust z, and by a factor of two."""
    middle = statistics.median(others)
    spread = max(statistics.median(abs(item - middle) for item in others) * 1.4826, 1e-3)
    return (value - middle) / spread > limit and value - middle > math.log(2)


def is_rough(values: Sequence[float]) -> bool:
    """Return whether half of the steps change the value by a factor of two, as in the loss of two samples."""
    logs = logarithms(values)
    changes = [abs(after - before) for before, after in zip(logs, logs[1:])]
    return len(changes) >= LEAST_STEPS and statistics.median(changes) > _ROUGH


def logarithms(values: Iterable[float]) -> list[float]:
    """Return the logarithms of the positive values."""
    return [math.log(value) for value in values if value > 0]


def is_above(value: float, mean: float, limit: float | None) -> bool:
    """Return whether the size of a value is above a running mean by so large a part: msprobe's AnomalyTurbulence."""
    return limit is not None and abs(value) > mean * (1 + limit)


def is_strange(value: float, mean: float, limit: float | None) -> bool:
    """Return whether a value is NaN or its size above a limit: msprobe's AnomalyNan."""
    return math.isnan(value) or (limit is not None and abs(value) > limit)


def not_a_number(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """NaN or Inf."""
    if math.isfinite(value):
        return NOTHING
    word = "NaN/Inf"
    after = NOTHING
    if history.count:
        word = "NaN" if math.isnan(value) else "Inf"
        after = say("alarm.after", last=history.last, last_step=history.last_step)
    return say(key, value=str(value), word=word, after=after, step=now.step)


def spike(
    key: str, is_each: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """A value far above those before; where each step is known also by a factor, and above the highest."""
    highest = max(history.recent) if is_each else 0.0
    is_loss = history.kinds == "loss"  # of single samples no spike where others before were as hard
    if (
        value <= 0
        or value <= highest
        or (is_loss and value <= history.highest and is_rough(history.recent))
    ):
        return NOTHING
    if is_loss:
        if value > max(2 * limit * highest, 0.5 * history.first):  # of a loss near zero z is small
            before = say("alarm.at_most", value=highest, count=len(history.recent))
            return say(key, value=value, before=before, step=now.step)
        if value < _SMALL * history.first:
            return NOTHING
    last = list(history.recent)[-WINDOW:]
    logs = logarithms(last)
    z, least = (_Z, LEAST_STEPS) if is_each else (limit, LEAST_STEPS - 1)
    if len(logs) < least or (is_each and value < limit * math.exp(statistics.median(logs))):
        return NOTHING
    if not is_far(math.log(value), logs, z):
        return NOTHING
    middle = math.exp(statistics.median(logs))
    about = say("alarm.about", value=middle, count=len(last)) if is_each else middle
    return say(key, value=value, before=about, step=now.step)


def gradient_spike(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A spike above twice the highest value before."""
    return spike(key, True, history, value, limit, now) if value > 2 * history.highest else NOTHING


def rising(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A loss whose median left its lowest."""
    if len(history.recent) < 10 or not math.isfinite(value):
        return NOTHING
    middle = statistics.median([*list(history.recent)[-9:], value])
    lowest = history.lowest
    history.lowest = min(lowest, middle)
    least = history.first if is_rough(history.recent) else 0.5 * history.first
    if not 0 < limit * lowest < middle or not middle > least:
        return NOTHING
    return say(key, value=middle, lowest=lowest, step=now.step)


def growing(
    key: str, above: float, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """Values that grow in each of five steps, and so many times above the highest before."""
    first = history.recent[max(1 - LEAST_STEPS, -len(history.recent))]
    if first <= 0 or value < limit * first or value < above * history.highest:
        return NOTHING
    window = history.ending(LEAST_STEPS, value)
    if any(x >= y for x, y in zip(window, window[1:])):
        return NOTHING
    return say(key, left=first, right=value, count=LEAST_STEPS, step=now.step)


def vanishing(
    key: str, is_each: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """Five gradients far below the first ones; in a dump, which has few steps, one that is small on average."""
    bound = limit * now.learnt * history.first if is_each else limit
    if not is_each:
        value = value / math.sqrt(now.point.size) if now.point.size else 0.0
    if not 0 < value < bound:
        return NOTHING
    if is_each and not all(0 < item < bound for item in history.ending(LEAST_STEPS, value)):
        return NOTHING
    return say(key, value=value, first=history.first, step=now.step)


def unchanged(
    key: str, of_zeros: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """Equal values: zeros, which were none before, or others."""
    if bool(value) == of_zeros:
        return NOTHING
    count = int(limit)
    last = history.ending(count, value)
    if of_zeros:
        least = now.floor if history.kinds == "update" else 0.0
        holds = not any(last) and (
            max(history.recent, default=0.0) > least or history.kinds == "grad_in"
        )
    else:
        holds = 1 < count <= len(last) and len(set(last)) == 1
    return say(key, value=value, count=count, step=now.step) if holds else NOTHING


def never(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A gradient of zeros in each of the first steps."""
    holds = history.count == int(limit) - 1 and not value and not any(history.recent)
    return say(key, count=int(limit), step=now.step) if holds else NOTHING


def no_gradient(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """All gradients of an update are zeros."""
    holds = not value and (limit < 2 or not any(history.ending(int(limit), value)))
    return say(key, step=now.step) if holds else NOTHING


def zero_gradient(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A gradient of zeros after another one."""
    return say(key, step=now.step) if limit and value == 0 < history.last else NOTHING


def missing(key: str, least: int, history: History, gap: float, limit: float, now: Now) -> Sentence:
    """No value in so many steps, after so many in a row."""
    return (
        say(key, last=history.last_step, step=now.step)
        if history.streak >= least and gap == limit
        else NOTHING
    )


def update_ratio(
    key: str, is_each: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """A large update: by the updates before, or in a dump by the norm of the parameter."""
    before = history.last
    change = abs(value - history.last)
    least = 0.0
    if is_each:
        before = history.median
        change = value
        least = max(now.floor, 3 * max(history.highest, *history.recent))
    holds = before > 0 and limit * before < change > least
    return say(key, value=value, before=before, step=now.step) if holds else NOTHING


def weight_drift(
    key: str, is_each: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """A norm so many times that of ten values before, and no longer slow; in a dump that of the first step."""
    before, least = (
        (history.recent[-10], _DRIFT * history.last) if is_each else (history.first, 0.0)
    )
    holds = before > 0 and limit * before <= value >= least
    return say(key, value=value, before=before, step=now.step) if holds else NOTHING


def setting(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A number of the optimizer far above the highest before, or far nearer to 1."""
    highest = max(history.highest, *history.recent)
    is_near_one = 0.5 < highest < 1 and highest < value and limit * (1 - value) <= 1 - highest
    holds = value >= limit * highest > 0 or is_near_one
    return say(key, value=value, highest=highest, step=now.step) if holds else NOTHING


def stuck(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A loss that turns no more."""
    history.past.append(value)
    if len(history.past) < 3 * WINDOW:
        return NOTHING
    past = list(history.past)
    rises = [x < y for x, y in zip(past, past[1:])]
    turns = [x != y for x, y in zip(rises, rises[1:])]
    turned = sum(turns[1 - WINDOW :])
    before = sum(turns[: 1 - WINDOW])
    sizes = [abs(y - x) for x, y in zip(past, past[1:])]
    is_calm = 4 * statistics.median(sizes[1 - WINDOW :]) < statistics.median(sizes[: 1 - WINDOW])
    if turned > limit or before < WINDOW or not is_calm:
        return NOTHING
    return say(key, turns=turned, count=WINDOW, before=before, long=2 * WINDOW, step=now.step)


def collapse(
    key: str, least: float, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """A number below ``least`` that fell: so many times, or below 1."""
    highest = max(history.recent)
    is_low = value < least and (value * limit <= highest or value < 1 <= highest)
    return say(key, value=value, highest=highest, step=now.step) if is_low else NOTHING


def dead_units(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """An activation that is zero in five steps. Without a count it is known of a relu whose largest output is zero."""
    at = now.point
    is_zero_relu = "relu" in history.kinds and at.zeros is None and at.highest <= 0 and at.size
    known = 1.0 if is_zero_relu else at.zeros or 0.0
    history.streak = history.streak + 1 if known > limit else 0
    return say(key, value=known, count=LEAST_STEPS) if history.streak == LEAST_STEPS else NOTHING


def saturation(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A value near to the largest number of its dtype."""
    peak = now.point.peak
    return say(key, value=peak, step=now.step) if peak >= limit and math.isfinite(peak) else NOTHING


def swollen(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A number above a limit, and four times the lowest that was measured."""
    lowest = history.lowest = min(history.lowest, history.recent[0])
    return (
        say(key, value=value, lowest=lowest, step=now.step)
        if value >= max(limit, 4 * lowest)
        else NOTHING
    )


def beyond(
    key: str, count: int, is_above: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """So many values in a row above a limit, or below it."""
    last = history.ending(count, value) if count > 1 else [value]
    nearest = min(last) if is_above else max(last)
    holds = len(last) == count and (nearest > limit if is_above else nearest < limit)
    return say(key, value=nearest, count=count, step=now.step) if holds else NOTHING
