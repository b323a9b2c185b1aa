# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rules on the curves of calls: rolling records have one value of each call in a round.

A call is judged by its own inputs. Its gain is the norm of an output by the largest norm of an input: a call in front
of it that grows changes the inputs too, and so not the gain.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from probe.findings.sentence import Sentence, say
from probe.series.alarm import Alarm
from probe.series.rules import ONLINE

_PLACE = re.compile(r"^(.*)\.((?:input|output)(?:_kwargs)?\.[^.]+)\.([a-z]+)$")
_KEPT = 12  # values of a gain that the next one is compared with
_LEAST = 0.4  # a smaller change of the logarithm of a gain is none
_SPREAD = 0.02  # a smaller spread of the logarithms of a gain counts as this
_ROUNDS = 2  # in so many rounds, one after the other, a rule must hold


class Tensor(NamedTuple):
    """The numbers of one tensor of a call."""

    norm: float
    highest: float
    lowest: float
    zeros: float | None
    peak: float | None  # the part of its dtype's range that is used

    @property
    def is_finite(self) -> bool:
        """Whether no element is NaN/Inf."""
        return math.isfinite(self.highest) and math.isfinite(self.lowest)


class Curve:
    """The last values of one tensor of a call, and what holds for it."""

    __slots__ = ("active", "count", "far", "gains", "is_finite", "zeros")

    def __init__(self) -> None:
        self.count = 0
        self.gains: deque[float] = deque(maxlen=_KEPT)
        self.far = 0  # rounds in which the gain was far from those before
        self.zeros: deque[float] = deque(maxlen=_KEPT)
        self.is_finite = True  # in all rounds before
        self.active: set[str] = set()  # the rules that hold


class CallRules:
    """Looks at the calls of each step. A rule without threshold does not look."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = limits
        self._least = _LEAST
        self._curves: dict[str, Curve] = {}

    def feed(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Take the numbers of the calls of a step; yield the rules that hold from now on."""
        for entry, places in _entries(values).items():
            inputs = [item for place, item in places.items() if place.startswith("input")]
            for place, tensor in places.items():
                if place.startswith("output"):
                    series = f"{entry}.{place}.norm"
                    curve = self._curves.setdefault(series, Curve())
                    for rule, said in self._look(step, curve, tensor, inputs):
                        if rule not in curve.active:
                            curve.active.add(rule)
                            yield Alarm(rule, series, step, said)
                    curve.count += 1

    def _look(
        self, step: int, curve: Curve, tensor: Tensor, inputs: list[Tensor]
    ) -> Iterator[tuple[str, Sentence]]:
        has_finite_inputs = all(item.is_finite for item in inputs)
        if not tensor.is_finite:
            # a mask of -inf is so from the first round on
            is_new = curve.is_finite and (curve.count > 0 or math.isnan(tensor.norm))
            if "call NaN/Inf" in self._limits and has_finite_inputs and is_new:
                yield "call NaN/Inf", say("alarm.call_nan", step=step)
            curve.is_finite = False
            return
        yield from self._range(step, curve, tensor)
        yield from self._zeros(step, curve, tensor)
        if has_finite_inputs:
            yield from self._gain(step, curve, tensor, inputs)

    def _range(self, step: int, curve: Curve, tensor: Tensor) -> Iterator[tuple[str, Sentence]]:
        limit = self._limits.get("call range")
        if limit is not None and tensor.peak is not None and tensor.peak >= limit:
            yield "call range", say("alarm.call_range", value=tensor.peak, step=step)

    def _zeros(self, step: int, curve: Curve, tensor: Tensor) -> Iterator[tuple[str, Sentence]]:
        limit = self._limits.get("call zeros")
        if limit is None or tensor.zeros is None:
            return
        curve.zeros.append(tensor.zeros)
        recent = list(curve.zeros)
        last, before = recent[-_ROUNDS:], recent[:-_ROUNDS]
        if len(before) >= _ROUNDS and min(last) > limit and max(before) < limit:
            yield "call zeros", say("alarm.call_zeros", value=tensor.zeros, step=step)

    def _gain(
        self, step: int, curve: Curve, tensor: Tensor, inputs: list[Tensor]
    ) -> Iterator[tuple[str, Sentence]]:
        limit = self._limits.get("call gain")
        largest = max((item.norm for item in inputs), default=0.0)
        if limit is None or not largest > 0 or not tensor.norm > 0:
            return
        gain = math.log(tensor.norm / largest)
        if len(curve.gains) >= ONLINE["call gain"].warm_up:
            middle = statistics.median(curve.gains)
            spread = statistics.median(abs(item - middle) for item in curve.gains)
            apart = abs(gain - middle)
            if apart > max(limit * max(1.4826 * spread, _SPREAD), self._least):
                curve.far += 1
                if curve.far >= _ROUNDS:
                    numbers = {"value": math.exp(gain), "before": math.exp(middle)}
                    yield "call gain", say("alarm.call_gain", **numbers, step=step)
                if curve.far < 2 * _ROUNDS:
                    return  # it is not yet usual
            else:
                curve.far = 0
        curve.gains.append(gain)


def _entries(values: Mapping[str, float]) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each entry by their places."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, value in values.items():
        match = _PLACE.match(name)
        if match is not None:
            found.setdefault(match[1], {}).setdefault(match[2], {})[match[3]] = value
    return {
        entry: {
            place: Tensor(
                row.get("norm", math.nan),
                row.get("max", math.nan),
                row.get("min", math.nan),
                row.get("zeros"),
                row.get("peak"),
            )
            for place, row in places.items()
        }
        for entry, places in found.items()
    }
