# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Recorded gradients beside central differences in float64, and the bytes of a call that is made several times.

MindSpore's own differentiation says nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say
from probe.replaying.composed import Composed, Load
from probe.replaying.described import CannotReplayError, Program, ReplayResult
from probe.replaying.judging import KINK, LABEL, OK, WRONG, Array, Judged

#: the steps that are tried, over the size of the input, the first one first
_STEPS = tuple(0.01 / 8**place for place in range(1, 9))
#: whole directions for each input; smaller ones where the function has kinks: an element may be clear of them
_WHOLE = 3
_PARTS = 10
_SURE = 1e-3  # kinks of many elements may cancel in a sum, but hardly to so small a part of the difference


class Slope(NamedTuple):
    """A derivative along one direction."""

    value: float
    error: float  # a bound of its error
    kink: float  # how far the derivatives of both sides are apart
    step: float  # the step that was chosen


def check(program: Program, load: Load) -> ReplayResult:
    """Return the verdict on the recorded gradients of a function, or raise the reason why there is none."""
    function = Composed(program, load)
    own_errors = function.own_errors()
    judged: list[Judged] = []
    for number in range(len(program.inputs)):
        judged += _Check(function, number, load, own_errors[number]).judged()
    if not judged:
        raise CannotReplayError("replay.no_input_gradient")
    verdicts = {item.verdict for item in judged}
    worst = next(verdict for verdict in (WRONG, OK, KINK) if verdict in verdicts)
    if worst == WRONG and program.outside:
        raise CannotReplayError("replay.outside", place=program.outside)
    return ReplayResult(worst, NOTHING, LABEL, judged)


class _Check:
    """The check of the recorded gradient of one input."""

    def __init__(self, function: Composed, number: int, load: Load, own: Array) -> None:
        program = function.program
        self._function = function
        self._number = number
        self._place = program.places[number]
        self._x = function.base[number]
        self._own = own
        self._whole = _WHOLE if len(program.steps) == 1 else 2
        gradients = [load(leaf).astype(np.float64) for leaf in program.gradients[number]]
        self._gradient = np.asarray(sum(gradients))

    def judged(self) -> Iterator[Judged]:
        """Yield the worst verdict on the gradient; none for an empty tensor."""
        if not self._x.size:
            return
        found: list[Judged] = []
        for count, direction in enumerate(self._directions()):
            if count >= self._whole and any(item.verdict != KINK for item in found):
                break
            found.append(self._along(direction))
        yield max(found, key=_badness)

    def _directions(self) -> Iterator[Array]:
        """Yield directions: all elements alike, each by its size, then ever fewer elements."""
        x = self._x
        random = np.random.RandomState(self._number)
        # a mask has huge numbers, and no gradient
        is_alive = np.isfinite(x) & (x != 0) & (self._gradient != 0)
        alive = np.abs(x[is_alive])
        size = float(np.median(alive)) if alive.size else 1.0
        for place in range(self._whole):
            signs = random.choice([-1.0, 1.0], x.shape) * random.uniform(0.5, 1.0, x.shape)
            sizes = np.where(x == 0, size, np.abs(x)) if place == 1 else size
            yield signs * sizes
        if not self._gradient.any():
            return
        for place in range(_PARTS):
            few = np.zeros(x.size)
            among = np.flatnonzero(self._gradient) if place % 2 else np.arange(x.size)
            count = len(among) // 8 ** (place // 2 + 1)
            chosen = random.choice(among, max(1, count), replace=False)
            few[chosen] = random.choice([-size, size], len(chosen))
            yield few.reshape(x.shape)

    def _along(self, direction: Array) -> Judged:
        """Return the verdict on the derivative along one direction."""
        products = self._gradient * direction
        recorded = float(np.sum(products))
        spread = float(np.sqrt(np.sum(products**2)))
        rounding = self._function.rounding
        slope = self._slope(direction, rounding * max(spread, abs(recorded)))
        off = abs(recorded - slope.value)
        allowed = self._allowed(direction, spread + abs(recorded))
        if off > allowed:
            allowed += 6 * self._disturbance(direction, slope)
        verdict = OK
        said = NOTHING
        is_finite = bool(np.isfinite(off))
        if not is_finite or off > allowed + 4 * slope.error:
            is_sure = is_finite and slope.error < 0.1 * off and slope.kink < _SURE * off
            verdict = WRONG if is_sure else KINK
            said = _remark(slope, recorded, allowed) if is_sure else NOTHING
        scale = max(abs(recorded), abs(slope.value), spread)
        if scale == 0 and self._gradient.any():
            verdict = KINK  # these elements say nothing
        if scale > 0:
            off = off / scale
            allowed = allowed / scale
        return Judged(
            self._place, verdict, off, allowed, off / rounding, allowed / rounding, [], said
        )

    def _allowed(self, direction: Array, size: float) -> float:
        """Return how far a derivative of some size may be off: by rounding, and by MindSpore's own errors."""
        rounding = self._function.rounding
        times = 4 if rounding > 1e-6 else 16
        own = float(np.sqrt(np.sum((self._own * direction) ** 2)))
        return rounding * times * size + 2 * own

    def _disturbance(self, direction: Array, slope: Slope) -> float:
        """Return how far the derivative moves if all that was rounded is disturbed."""
        moved = []
        for seed in (11, 12):
            up = self._value(direction, slope.step, seed)
            down = self._value(direction, -slope.step, seed)
            moved.append(abs((up - down) / (2 * slope.step) - slope.value))
        return max(moved)

    def _slope(self, direction: Array, wanted: float) -> Slope:
        """Return the derivative, with the step whose bound is least: of the formula, and of rounding."""
        function = self._function
        middle = self._value(direction, 0.0)
        best = Slope(np.nan, np.inf, np.inf, _STEPS[-1])
        before = np.nan
        kink = np.inf
        for step in _STEPS:
            up = self._value(direction, step)
            down = self._value(direction, -step)
            central = (up - down) / (2 * step)
            noise = 8 * function.eps * function.size / step
            error = abs(central - before) / 8 + noise
            side = abs(up - 2 * middle + down) / step + 4 * noise
            if np.isfinite(side):
                kink = min(kink, side)
                bound = error + 0.02 * side  # a saturated function has a large side
                if np.isfinite(error) and bound < best.kink:
                    best = Slope(central, error, bound, step)
            before = central
            if max(best.error, 0.01 * kink) < 0.1 * wanted:
                break
        return best._replace(kink=kink)

    def _value(self, direction: Array, step: float, seed: int | None = None) -> float:
        values = list(self._function.base)
        values[self._number] = self._x + step * direction
        return self._function(values, seed)


def _remark(slope: Slope, recorded: float, allowed: float) -> Sentence:
    if abs(slope.value) <= allowed:
        return say("replay.constant")
    if abs(recorded) <= allowed:
        return say("replay.no_slope")
    return say("replay.times", times=recorded / slope.value)


def _badness(item: Judged) -> tuple[int, float]:
    order = (KINK, OK, WRONG)
    return order.index(item.verdict), item.off / max(item.here, 1e-300)
