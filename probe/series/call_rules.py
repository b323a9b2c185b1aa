# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rules on the curves of calls: rolling records have one value of each call in a round.

A call is judged by its own inputs. Its gains are the norm of an output by the norms of the inputs: a call in front of
it that grows changes the inputs too, and so not the gains.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from probe.findings.sentence import Sentence, say
from probe.naming import BACKWARD, FORWARD, MODULES
from probe.series.alarm import Alarm
from probe.series.call_file import Rows
from probe.series.rules import ONLINE
from probe.series.series_name import call_place

_MAKES_NAN = "call NaN/Inf"
_KEPT = 20  # values of a gain that the next one is compared with
_JUMP = math.log(2)  # a smaller change of a gain is no jump
_STEADY = 6  # rounds of a steady change
_GROWTH = math.log(2.5)  # a smaller change in these rounds is none
_EVEN = 4.0  # a steady change has no round with more than so many times that of another
_STILL = 0.25  # so small a part of the change is the range of the values before it
_SPREAD = 0.01  # a smaller roughness of the logarithms of a gain counts as this
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


Entries = Mapping[str, Mapping[str, Tensor]]  # entry -> place -> tensor


class Curve:
    """The last values of one tensor of a call, and what holds for it."""

    __slots__ = ("active", "count", "far", "gains", "is_finite", "zeros")

    def __init__(self) -> None:
        self.count = 0
        self.gains: deque[tuple[float, ...]] = deque(maxlen=_KEPT)  # by each input
        self.far = 0  # rounds in which the gain was far from those before
        self.zeros: deque[float] = deque(maxlen=_KEPT)
        self.is_finite = True  # in all rounds before
        self.active: set[str] = set()  # the rules that hold


class CallRules:
    """Looks at the calls of each step. A rule without threshold does not look."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._limits = limits
        self._curves: dict[str, Curve] = {}
        self._has_functions = False  # whether calls of functions are recorded, not Cells alone

    def feed(self, step: int, entries: Entries) -> Iterator[Alarm]:
        """Take the calls of a step; yield the rules that hold from now on."""
        self._has_functions |= not all(entry.startswith(MODULES) for entry in entries)
        for entry, places in entries.items():
            inputs = [item for place, item in places.items() if place.startswith("input")]
            used = list(inputs)
            if f".{BACKWARD}" in entry:  # it uses the values of the forward too
                used += entries.get(entry.replace(f".{BACKWARD}", f".{FORWARD}"), {}).values()
            is_clean = all(item.is_finite for item in used)
            # the weights of a Cell are not among its inputs; those of a function are
            may_blame = not (self._has_functions and entry.startswith(MODULES))
            for place, tensor in places.items():
                if place.startswith("output"):
                    series = f"{entry}.{place}.norm"
                    curve = self._curves.setdefault(series, Curve())
                    for rule, said in self._look(step, curve, tensor, inputs, is_clean):
                        if rule == _MAKES_NAN and not may_blame:
                            continue
                        if rule not in curve.active:
                            curve.active.add(rule)
                            yield Alarm(rule, series, step, said)
                    curve.count += 1

    def _look(
        self, step: int, curve: Curve, tensor: Tensor, inputs: list[Tensor], is_clean: bool
    ) -> Iterator[tuple[str, Sentence]]:
        if not tensor.is_finite:
            # a mask of -inf is so from the first round on
            is_new = curve.is_finite and (curve.count > 0 or math.isnan(tensor.norm))
            if _MAKES_NAN in self._limits and is_clean and is_new:
                yield _MAKES_NAN, say("alarm.call_nan", step=step)
            curve.is_finite = False
            return
        yield from self._range(step, curve, tensor)
        yield from self._zeros(step, curve, tensor)
        if is_clean:
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
        last = recent[-_ROUNDS:]
        before = recent[:-_ROUNDS]
        if len(before) >= _ROUNDS and min(last) > limit and max(before) < limit:
            yield "call zeros", say("alarm.call_zeros", value=tensor.zeros, step=step)

    def _gain(
        self, step: int, curve: Curve, tensor: Tensor, inputs: list[Tensor]
    ) -> Iterator[tuple[str, Sentence]]:
        limit = self._limits.get("call gain")
        is_one_number = tensor.highest == tensor.lowest  # as a loss, which falls by itself
        if limit is None or is_one_number:
            return
        gains = _gains(tensor, inputs)
        if not gains:
            return
        if curve.gains and len(curve.gains[-1]) != len(gains):
            curve.gains.clear()
        before = None
        if len(curve.gains) >= ONLINE["call gain"].warm_up:
            past = list(zip(*curve.gains))  # of each input
            if all(_is_jump(own, gain, limit) for own, gain in zip(past, gains)):
                curve.far += 1
                if curve.far < _ROUNDS:
                    return  # one value alone may be chance
                before = statistics.median(past[_largest(gains)])
            elif all(_is_steady([*own, gain]) for own, gain in zip(past, gains)):
                before = past[_largest(gains)][-_STEADY]
        if before is not None:
            numbers = {"value": math.exp(min(gains)), "before": math.exp(before)}
            yield "call gain", say("alarm.call_gain", **numbers, step=step)
        curve.far = 0
        curve.gains.append(gains)


def _gains(tensor: Tensor, inputs: Sequence[Tensor]) -> tuple[float, ...]:
    """Return the logarithms of the norm of an output by those of the inputs; () where a number has left float32.

    An output that goes with one of its inputs is not judged: a product follows the gate that closes.
    """
    ratios = [tensor.norm / item.norm for item in inputs if item.norm > 0]
    if not all(0 < ratio < math.inf for ratio in ratios):
        return ()
    return tuple(map(math.log, ratios))


def _largest(gains: Sequence[float]) -> int:
    """Return the place of the input with the largest norm."""
    return gains.index(min(gains))


def _is_jump(past: Sequence[float], gain: float, limit: float) -> bool:
    """Return whether a gain is far from each of the last ones. Learning changes gains in many rounds."""
    noise = limit * 1.4826 * max(_roughness(past), _SPREAD)
    return min(abs(gain - item) for item in past[-_STEADY:]) > max(noise, _JUMP)


def _is_steady(gains: Sequence[float]) -> bool:
    """Return whether a gain changes by nearly the same factor in each of the last rounds, and stood still before."""
    last = gains[-_STEADY - 1 :]
    changes = [after - before for before, after in zip(last, last[1:])]
    sizes = sorted(map(abs, changes))
    total = abs(sum(changes))
    older = gains[: -_STEADY - 1]
    return (
        total > _GROWTH
        and math.isclose(total, sum(sizes))  # all of one sign
        and sizes[-1] < _EVEN * sizes[0]
        and max(older) - min(older) < _STILL * total
    )


def _roughness(values: Sequence[float]) -> float:
    """Return by how much a value differs from the one before, beside a steady change."""
    changes = [after - before for before, after in zip(values, list(values)[1:])]
    steady = statistics.median(changes)
    return statistics.median(abs(change - steady) for change in changes)


class _Places(NamedTuple):
    """The places of the numbers of one tensor in a row; None where the row lacks one."""

    norm: int
    highest: int | None
    lowest: int | None
    zeros: int | None
    peak: int | None


@functools.lru_cache(10_000)
def _places_of(columns: tuple[str, ...]) -> Mapping[str, _Places]:
    """Return the tensors of a row by its columns. One that has bits alone is left out.

    >>> _places_of(("output.0.max", "output.0.norm"))
    {'output.0': _Places(norm=1, highest=0, lowest=None, zeros=None, peak=None)}
    """
    found: dict[str, dict[str, int]] = {}
    for index, column in enumerate(columns):
        place, _, statistic = column.rpartition(".")
        found.setdefault(place, {})[statistic] = index
    return {
        place: _Places(
            numbers["norm"],
            numbers.get("max"),
            numbers.get("min"),
            numbers.get("zeros"),
            numbers.get("peak"),
        )
        for place, numbers in found.items()
        if "norm" in numbers
    }


def tensors_of_rows(rows: Rows) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of calls by the rows of their entries. Those that have bits alone are left out."""
    found: dict[str, dict[str, Tensor]] = {}
    for entry, row in rows.items():
        values = tuple(row.values())
        found[entry] = {
            place: _tensor(values, numbers) for place, numbers in _places_of(tuple(row)).items()
        }
    return found


def _tensor(values: Sequence[float], places: _Places) -> Tensor:
    norm, highest, lowest, zeros, peak = places
    return Tensor(
        values[norm],
        math.nan if highest is None else values[highest],
        math.nan if lowest is None else values[lowest],
        None if zeros is None else values[zeros],
        None if peak is None else values[peak],
    )


def tensors_of_series(values: Mapping[str, float]) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of calls by the names of their series."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        place = call_place(name)
        if place is not None:
            rows.setdefault(place.entry, {})[f"{place.place}.{place.statistic}"] = value
    return tensors_of_rows(rows)
