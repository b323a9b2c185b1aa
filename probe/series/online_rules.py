# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Looks at each step by the rules of ``rules.RULES``, and keeps only the last values of each series.

``probe trend`` and ``probe watch`` feed the rows of a file into the same rules.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from probe.findings.finding import Finding
from probe.findings.sentence import Sentence, say
from probe.series.table import LEAST_STEPS, ONLINE, is_far

_WINDOW = 20


@dataclass(frozen=True)
class Alarm(Finding):
    """A rule holds for a series from now on.

    Attributes:
        rule: the rule's name.
        series: the name of the series.
        step: the step.
        said: the numbers, and since when.
    """

    rule: str
    series: str
    step: int
    said: Sentence


_Z = 6.0
#: so small a part of the step's largest update is rounding: a bias before a BatchNorm has no gradient
_ROUNDING = 1e-5


_LAST = {"grad": "grad", "grad_in": "grad_in", "param": "param", "update": "update", "global_norm": "total",
         "max": "end", "min": "end", "seconds": "seconds"}  # fmt: skip
_LOSS = re.compile(r"loss\d*")
_SCALAR = re.compile(r"optimizer\d*\.\w+(\.\d+)?")


def kind_of(name: str) -> str:
    """Return the kind of a series by its name.

    >>> kind_of("fc.weight.grad"), kind_of("loss"), kind_of("optimizer.global_norm"), kind_of("optimizer.learning_rate")
    ('grad', 'loss', 'total', 'scalar')
    """
    last = name.rpartition(".")[2]
    if last in _LAST:
        return "bias" if last == "param" and name.endswith((".bias.param", ".beta.param")) else _LAST[last]
    if name.startswith("Cell."):
        return "cell"
    if "loss_scale" in name:
        return "scale"
    if name.startswith("optimizer"):
        return "scalar" if _SCALAR.fullmatch(name) else "state"
    return "loss" if _LOSS.fullmatch(name) else "logged"


class _Series:
    """The last values of one series."""

    __slots__ = (
        "active",
        "count",
        "first",
        "floor",
        "highest",
        "kind",
        "last",
        "last_step",
        "lowest",
        "past",
        "recent",
        "streak",
    )

    def __init__(self, name: str) -> None:
        self.kind, self.count, self.streak = kind_of(name), 0, 0
        self.past: deque[float] = deque(maxlen=3 * _WINDOW)  # for ``stuck``
        self.recent: deque[float] = deque(maxlen=_WINDOW)
        self.first, self.last = math.nan, math.nan
        self.lowest, self.highest = math.inf, 0.0  # the highest of the values before the last five
        self.last_step = -1
        self.floor = 0.0  # smaller values are rounding
        self.active: dict[str, float] = {}  # rule -> the last step in which it held

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
        self.last, self.last_step = value, step
        if self.count == _WARM:
            self.first = self.median


class OnlineRules:
    """Looks at the numbers of each step.

    Args:
        thresholds: rule -> another threshold; a rule with None does not look.
    """

    def __init__(self, thresholds: Mapping[str, float | None] | None = None) -> None:
        limits = {**{name: rule.threshold for name, rule in ONLINE.items()}, **(thresholds or {})}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._series: dict[str, _Series] = {}
        self._by_kind: dict[str, dict[str, _Series]] = {"grad": {}, "grad_in": {}, "state": {}}
        self._of_kind: dict[str, list[str]] = {}
        for name, rule in ONLINE.items():
            for kind in rule.kinds if name in self._limits else ():
                self._of_kind.setdefault(kind, []).append(name)
        self._apart: dict[str, int] = {}  # gradients -> steps in a row in which another part entered than of the others
        self._vanishing = self._limits.get("vanishing", 0.0)
        self._steps = 0

    def feed(self, step: int, values: Mapping[str, float]) -> list[Alarm]:
        """Take the numbers of a step; return the rules that hold from this step on."""
        found: list[Alarm] = []
        self._steps += 1
        vanishing = self._vanishing = self._limits.get("vanishing", 0.0) * self._learnt()
        largest = max((value for name, value in values.items() if name.endswith(".update")), default=0.0)
        if "reset" in self._limits and any(name in values for name in itertools.islice(self._by_kind["state"], 1)):
            found += self._reset(step, values)
        for name, value in values.items():
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = _Series(name)
                if series.kind in self._by_kind:
                    self._by_kind[series.kind][name] = series
            series.floor = _ROUNDING * largest
            rules = self._of_kind.get(series.kind)
            if vanishing * series.first < value < 2 * series.highest and series.kind == "grad" and not series.active:
                series.take(step, value)  # between these no rule of gradients holds
            elif rules:
                found += self._look(name, series, rules, step, value)
        if "missing" in self._limits:
            found += self._missing(step, values)
        if "scaled" in self._limits and any(name in values for name in self._by_kind["grad_in"]):
            found += self._scaled(step, values)
        return found

    def _learnt(self) -> float:
        """Return the part of the first loss that is left: where all is learnt, gradients are small."""
        loss = self._series.get("loss")
        return min(1.0, loss.median / loss.first) if loss is not None and loss.first > 0 and loss.median > 0 else 1.0

    def _look(self, name: str, series: _Series, rules: list[str], step: int, value: float) -> Iterator[Alarm]:
        for rule in rules:
            if rule in _CHECKS and series.count >= ONLINE[rule].warm_up:
                text = _CHECKS[rule](series, value, self._vanishing if rule == "vanishing" else self._limits[rule])
                if text:
                    if rule not in series.active:
                        yield Alarm(rule, name, step, say("text", text=f"{text} in step {step}"))
                    series.active[rule] = step
        if series.active:  # a rule that held a moment ago is not over
            series.active = {rule: last for rule, last in series.active.items() if step - last <= _WINDOW}
        if math.isfinite(value):
            series.take(step, value)

    def _missing(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        limit, warm_up = int(self._limits["missing"]), ONLINE["missing"].warm_up
        for name, series in self._by_kind["grad"].items():
            if name in values:
                series.active.pop("missing", None)
                series.streak = series.streak + 1 if series.last_step >= step - 1 else 0
            elif series.streak >= warm_up and step - series.last_step == limit and "missing" not in series.active:
                series.active["missing"] = math.inf
                yield Alarm(
                    "missing",
                    name,
                    step,
                    say("text", text=f"no gradient since step {series.last_step}, but in each step before"),
                )

    def _reset(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield a kind of states of an optimizer that fell together: one alone may cross zero."""
        kinds: dict[str, list[tuple[float, str]]] = {}
        for name, series in self._by_kind["state"].items():
            value = values.get(name, math.nan)
            if series.count >= ONLINE["reset"].warm_up and series.last > 0 and math.isfinite(value):
                kinds.setdefault(".".join(name.split(".", 2)[:2]), []).append((value / series.last, name))
        for kind, parts in kinds.items():
            middle, name = sorted(parts)[len(parts) // 2]
            if len(parts) > 2 and 0 <= middle * self._limits["reset"] <= 1:
                before = self._series[name]
                text = f"{middle * before.last:.4g} in step {step}, {before.last:.4g} in step {before.last_step}"
                yield Alarm("reset", name, step, say("text", text=f"{text}; as half of {kind} or more"))

    def _scaled(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield gradients of which another part enters the optimizer than of the others."""
        limit, parts = self._limits["scaled"], dict[str, float]()
        for name in self._by_kind["grad"]:
            arrived = values.get(name, 0.0)
            part = values.get(f"{name}_in", arrived) / arrived if arrived > 0 else math.nan
            if math.isfinite(part):
                parts[name] = part
        middle = statistics.median(parts.values()) if len(parts) > 2 else 0.0
        for name, part in parts.items():
            series = self._series[name]
            is_apart = middle > 0 < part and not middle / limit < part < middle * limit
            self._apart[name] = self._apart.get(name, 0) + 1 if is_apart else 0
            if self._apart[name] == 3 and "scaled" not in series.active:
                if series.count >= ONLINE["scaled"].warm_up:
                    text = f"{part:.3g} of it enters the optimizer, {middle:.3g} of the others"
                    yield Alarm(
                        "scaled", f"{name}_in", step, say("text", text=f"{text}, in step {step} and the two before")
                    )
                series.active["scaled"] = math.inf  # also where it was so from the first step on


_WARM = 20
#: so small a part of the first loss is no spike: a batch that is hard when nearly all is learnt
_SMALL = 0.1
#: growth in ten steps, of a weight that drifts; a weight that grows by equal steps from zero on stays below
_DRIFT = 1.15


def _nan(series: _Series, value: float, limit: float) -> str:
    if math.isfinite(value):
        return ""
    return f"{'NaN' if math.isnan(value) else 'Inf'} after {series.last:.4g}" if series.count else "NaN/Inf"


def _spike(series: _Series, value: float, limit: float) -> str:
    recent = series.recent
    highest = max(recent)
    if value <= 0 or value <= highest:
        return ""
    if series.kind == "loss" and value > max(2 * limit * highest, 0.5 * series.first):  # of a loss near zero z is small
        return f"{value:.4g}, {highest:.4g} at most in the {len(recent)} steps before"
    if series.kind == "loss" and value < _SMALL * series.first:
        return ""
    positive = [math.log(item) for item in recent if item > 0]
    middle = math.exp(statistics.median(positive)) if positive else math.inf
    if len(positive) < LEAST_STEPS or value < limit * middle or not is_far(math.log(value), positive, _Z):
        return ""
    return f"{value:.4g}, about {middle:.4g} in the {len(recent)} steps before"


def _gradient_spike(series: _Series, value: float, limit: float) -> str:
    return _spike(series, value, limit) if value > 2 * series.highest else ""


def _rising(series: _Series, value: float, limit: float) -> str:
    if len(series.recent) < 10 or not math.isfinite(value):
        return ""
    middle = statistics.median([*list(series.recent)[-9:], value])
    lowest = series.lowest
    series.lowest = min(lowest, middle)
    if not 0 < limit * lowest < middle or not middle > 0.5 * series.first:
        return ""
    return f"about {middle:.4g} in 10 steps, {lowest:.4g} at its lowest"


def _growing(series: _Series, value: float, limit: float) -> str:
    first = series.recent[max(1 - LEAST_STEPS, -len(series.recent))]
    if first <= 0 or value < limit * first or value < 2 * series.highest:
        return ""
    window = [*list(series.recent)[1 - LEAST_STEPS :], value]
    if any(x >= y for x, y in zip(window, window[1:])):
        return ""
    return f"from {window[0]:.4g} to {value:.4g} in {LEAST_STEPS} steps"


def _vanishing(series: _Series, value: float, limit: float) -> str:
    if not 0 < value < limit * series.first:
        return ""
    last = [*list(series.recent)[1 - LEAST_STEPS :], value]
    if not series.first > 0 or not all(0 < item < limit * series.first for item in last):
        return ""
    return f"{value:.3g}, about {series.first:.3g} at first"


def _zeros(series: _Series, value: float, limit: float) -> str:
    if value:
        return ""
    last = [*list(series.recent)[1 - int(limit) :], value]
    if any(last) or not (any(series.recent) or series.kind == "grad_in"):
        return ""
    return f"zero in {int(limit)} steps"


def _update_ratio(series: _Series, value: float, limit: float) -> str:
    middle, highest = series.median, max(series.highest, *series.recent)
    is_large = 0 < limit * middle < value > series.floor and value > 3 * highest
    return f"{value:.4g}, about {middle:.4g} before" if is_large else ""


def _drift(series: _Series, value: float, limit: float) -> str:
    before = series.recent[-10]
    is_large = 0 < limit * before <= value and value >= _DRIFT * series.last
    return f"{value:.4g}, {before:.4g} ten measured steps before" if is_large else ""


def _setting(series: _Series, value: float, limit: float) -> str:
    highest = max(series.highest, *series.recent)
    is_large = value >= limit * highest > 0 or (
        0.5 < highest < 1 and highest < value and limit * (1 - value) <= 1 - highest
    )
    return f"{value:.4g}, {highest:.4g} at most before" if is_large else ""


def _stuck(series: _Series, value: float, limit: float) -> str:
    series.past.append(value)
    if len(series.past) < 3 * _WINDOW:
        return ""
    past = list(series.past)
    rises = [x < y for x, y in zip(past, past[1:])]
    turns = [x != y for x, y in zip(rises, rises[1:])]
    now, before = sum(turns[1 - _WINDOW :]), sum(turns[: 1 - _WINDOW])
    sizes = [abs(y - x) for x, y in zip(past, past[1:])]
    is_calm = 4 * statistics.median(sizes[1 - _WINDOW :]) < statistics.median(sizes[: 1 - _WINDOW])
    if now > limit or before < _WINDOW or not is_calm:
        return ""
    return f"it turned {now} times in {_WINDOW} steps, {before} times in the {2 * _WINDOW} before: is the batch stuck?"


def _collapse(series: _Series, value: float, limit: float) -> str:
    highest = max(series.recent)
    return f"{value:.4g}, {highest:.4g} before" if value * limit <= highest or (value < 1 <= highest) else ""


_CHECKS: Mapping[str, Callable[[_Series, float, float], str]] = {
    "NaN/Inf": _nan,
    "spike": _spike,
    "gradient spike": _gradient_spike,
    "rising": _rising,
    "growing": _growing,
    "vanishing": _vanishing,
    "zeros": _zeros,
    "unchanged": _zeros,
    "update ratio": _update_ratio,
    "weight drift": _drift,
    "collapse": _collapse,
    "setting": _setting,
    "stuck": _stuck,
}
