# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The functions of the rules: each looks at one value of a series, and at the values before.

The table binds their first arguments: the key of the sentence, and limits that differ between rules. Functions for
dumps alone, which have few steps, are in ``dump_looks``. Rules that keep numbers of their own are in ``own_looks``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from probe.findings.sentence import NOTHING, Sentence, say
from probe.series.history import LEAST_STEPS, WINDOW, History, Now

_Z = 6.0  # robust z of a spike in each step
_SMALL = 0.1  # so small a part of the first loss is no spike: a batch that is hard when nearly all is learnt
_LEAST_ENTROPY = 0.25  # of attention, in nats
_ROUGH = 0.7  # a loss whose logarithm changes so much from one step to the next is that of single samples


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


def spike(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A value above the highest, and by a factor and a robust z above those before."""
    highest = max(history.recent)
    if value <= 0 or value <= highest:
        return NOTHING
    if history.kinds == "loss":
        if _is_usual_loss(history, value):
            return NOTHING
        if value > max(2 * limit * highest, 0.5 * history.first):  # of a loss near zero z is small
            before = say("alarm.at_most", value=highest, count=len(history.recent))
            return say(key, value=value, before=before, step=now.step)
    last = list(history.recent)[-WINDOW:]
    logs = logarithms(last)
    if len(logs) < LEAST_STEPS:
        return NOTHING
    middle = math.exp(statistics.median(logs))
    usual = max(middle, _usual_size(history, now))
    if value < limit * usual or not is_far(math.log(value), logs, _Z):
        return NOTHING
    before = say("alarm.about", value=middle, count=len(last))
    return say(key, value=value, before=before, step=now.step)


def _usual_size(history: History, now: Now) -> float:
    """Return the first size of a loss or a global norm, once nearly all is learnt; 0.0 before that.

    A single hard sample then raises both far above their last values.
    """
    learnt = now.learnt
    if history.kinds == "loss":
        learnt = history.median / history.first if history.first > 0 else 1.0
    return history.first if learnt < _SMALL and history.kinds in ("loss", "total") else 0.0


def _is_usual_loss(history: History, value: float) -> bool:
    """Return whether a loss above those before is small, or that of single samples, of which others were as hard."""
    is_hard = value <= history.highest and is_rough(history.recent)
    return is_hard or value < _SMALL * history.first


def gradient_spike(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A spike above twice the highest value before."""
    return spike(key, history, value, limit, now) if value > 2 * history.highest else NOTHING


def growing(
    key: str, above: float, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """Values that grow in each of five steps, and so many times above the highest before.

    With ``above``, growth from a dip up to the usual values is none: it counts from the median of the last values too.
    """
    first = history.recent[max(1 - LEAST_STEPS, -len(history.recent))]
    if first <= 0 or value < limit * first or value < above * history.highest:
        return NOTHING
    if above and value < limit * history.median:
        return NOTHING
    window = history.ending(LEAST_STEPS, value)
    if any(x >= y for x, y in zip(window, window[1:])):
        return NOTHING
    return say(key, left=first, right=value, count=LEAST_STEPS, step=now.step)


def vanishing(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """Five gradients far below the first ones."""
    bound = limit * now.learnt * history.first
    if not 0 < value < bound:
        return NOTHING
    if not all(0 < item < bound for item in history.ending(LEAST_STEPS, value)):
        return NOTHING
    return say(key, value=value, first=history.first, step=now.step)


def zeros(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """Zeros, which were none before."""
    count = int(limit)
    if value or any(history.ending(count, value)):
        return NOTHING
    least = now.floor if history.kinds == "update" else 0.0
    holds = max(history.recent, default=0.0) > least or history.kinds == "grad_in"
    return say(key, value=value, count=count, step=now.step) if holds else NOTHING


def unchanged(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """Equal values that are no zeros."""
    count = int(limit)
    last = history.ending(count, value)
    holds = value and 1 < count <= len(last) and len(set(last)) == 1
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


def update_ratio(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """An update that is large beside those before."""
    before = history.median
    least = max(now.floor, 3 * max(history.highest, *history.recent))
    holds = before > 0 and limit * before < value > least
    return say(key, value=value, before=before, step=now.step) if holds else NOTHING


def setting(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A number of the optimizer far above the highest before, or far nearer to 1."""
    highest = max(history.highest, *history.recent)
    is_near_one = 0.5 < highest < 1 and highest < value and limit * (1 - value) <= 1 - highest
    holds = value >= limit * highest > 0 or is_near_one
    return say(key, value=value, highest=highest, step=now.step) if holds else NOTHING


def collapse(
    key: str, least: float, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """A number below ``least`` that fell: so many times, or below 1."""
    highest = max(history.recent)
    is_low = value < least and (value * limit <= highest or value < 1 <= highest)
    return say(key, value=value, highest=highest, step=now.step) if is_low else NOTHING


def entropy_collapse(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """An entropy of attention that collapses, and not while the model learns where to look."""
    return NOTHING if now.is_learning else collapse(key, _LEAST_ENTROPY, history, value, limit, now)


def saturation(key: str, history: History, value: float, limit: float, now: Now) -> Sentence:
    """A value near to the largest number of its dtype."""
    peak = now.point.peak
    return say(key, value=peak, step=now.step) if peak >= limit and math.isfinite(peak) else NOTHING


def beyond(
    key: str, count: int, is_above: bool, history: History, value: float, limit: float, now: Now
) -> Sentence:
    """So many values in a row above a limit, or below it."""
    last = history.ending(count, value) if count > 1 else [value]
    nearest = min(last) if is_above else max(last)
    holds = len(last) == count and (nearest > limit if is_above else nearest < limit)
    return say(key, value=nearest, count=count, step=now.step) if holds else NOTHING
