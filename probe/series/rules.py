# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Lets the rules of ``RULES`` look at series, step by step: each rule looks at a value and those before it.

The monitor, ``probe watch`` and ``probe trend`` feed steps into ``OnlineRules``; dumps, which are complete, give their
series to ``series_hits`` and ``layer_hits``.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.series import looks, series_name
from probe.series.looks import LEAST_STEPS, WINDOW, History, Look, Now, Point, is_far, missing
from probe.series.series_name import kind_of, kinds_of_tensor, layer_kind, state_kind
from probe.store.file_names import Rank


class Condition(NamedTuple):
    """The condition of a rule."""

    threshold: float  # its default
    kinds: frozenset[str]  # the kinds of series that it looks at; see ``series_name``
    warm_up: int  # the number of values of a series before it looks
    look: looks.Look | None  # looks at one value; None where the rule looks at several series together
    least: int  # of dumps: the number of recorded steps before it looks


class Rule(NamedTuple):
    """A rule."""

    source: str  # the origin of rule and threshold
    dump: Condition | None  # its condition in dumps; None where it does not look at them
    online: Condition | None = None  # its condition in the monitor; likewise


def _condition(row: dict[str, Any] | None) -> Condition | None:
    if row is None:
        return None
    look = partial(getattr(looks, row["look"][0]), *row["look"][1:]) if row["look"] else None
    return Condition(**{**row, "kinds": frozenset(row["kinds"].split()), "look": look})


#: a rule in rules.json is its source, and its conditions in dumps and in the monitor; ``look`` is one of ``looks``
_ROWS = json.loads(Path(__file__).with_name("rules.json").read_text("utf-8")).items()
RULES = {name: Rule(source, _condition(dump), _condition(online)) for name, (source, dump, online) in _ROWS}
#: the rules of msprobe's key "alert": the numbers that each looks at, none for all, and its function
MSPROBE: dict[str, tuple[tuple[str, ...], Callable[[float, float, Any], bool]]] = {
    "AnomalyTurbulence": (("norm", "mean"), looks.is_above),
    "AnomalyNan": ((), looks.is_strange),
}
#: the conditions in dumps, and in the monitor
IN_DUMPS = {name: rule.dump for name, rule in RULES.items() if rule.dump is not None}
ONLINE = {name: rule.online for name, rule in RULES.items() if rule.online is not None}

Trend = dict[str, dict[Rank, dict[int, float]]]  # tensor -> rank -> step -> number
Points = dict[str, dict[Rank, dict[int, Point]]]  # tensor -> rank -> step -> further numbers
_Chosen = tuple[str, int, float, Look]  # rule, values before it looks, threshold, function
_ROUNDING = 1e-5  # so small a part of the step's largest update is rounding: a bias before a BatchNorm has no gradient
_LOST = 1e-6  # a smaller part of a parameter is lost when it is added in float32
_KEPT = 0.99  # the part of the older mean in a running mean


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


def _holding(series: str, history: History, rules: list[_Chosen], value: float, now: Now) -> Iterator[Alarm]:
    """Yield the rules that hold for a value, and did not hold a moment ago."""
    for rule, warm_up, limit, look in rules:
        if history.count >= warm_up:
            said = look(history, value, limit, now)
            if said:
                if said.key not in history.active:
                    yield Alarm(rule, series, now.step, said)
                history.active[said.key] = now.step


class OnlineRules:
    """Looks at the numbers of each step, beside the last of each series. A rule without threshold does not look."""

    def __init__(self, thresholds: Mapping[str, float | None] | None = None) -> None:
        limits = {**{name: rule.threshold for name, rule in ONLINE.items()}, **(thresholds or {})}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._series: dict[str, History] = {}
        kinds = ("grad", "grad_in", "state", "update")
        self._by_kind: dict[str | frozenset[str], dict[str, History]] = {kind: {} for kind in kinds}
        self._of_kind: dict[str | frozenset[str], list[_Chosen]] = {}
        for name, rule in ONLINE.items():
            for kind in rule.kinds if name in self._limits else ():
                chosen = self._of_kind.setdefault(kind, [])
                if rule.look:
                    chosen.append((name, rule.warm_up, self._limits[name], rule.look))
        self._apart: dict[str, int] = {}  # gradients -> steps in a row in which another part entered than of the others

    def feed(self, step: int, values: Mapping[str, float]) -> list[Alarm]:
        """Take the numbers of a step; return the rules that hold from this step on."""
        found: list[Alarm] = []
        floor = 0.0
        if not self._by_kind["update"].keys().isdisjoint(values):
            floor = _ROUNDING * max(value for name, value in values.items() if name.endswith(".update"))
        now = Now(step, self._learnt(), floor)
        vanishing = self._limits.get("vanishing", 0.0) * now.learnt
        if "reset" in self._limits and any(name in values for name in itertools.islice(self._by_kind["state"], 1)):
            found += self._reset(step, values)
        for name, value in values.items():
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = History(kind_of(name))
                if series.kinds in self._by_kind:
                    self._by_kind[series.kinds][name] = series
            if vanishing * series.first < value < 2 * series.highest and series.kinds == "grad" and not series.active:
                series.take(step, value)  # between these no rule of gradients holds
            elif (rules := self._of_kind.get(series.kinds)) is not None:
                here = now
                if series.kinds == "update":  # one that the rounding of its parameter takes is noise too
                    lost = _LOST * values.get(f"{name[: -len('update')]}param", 0.0)
                    here = now._replace(floor=max(floor, lost))
                found += _holding(name, series, rules, value, here)
                if series.active:  # a rule that held a moment ago is not over
                    series.active = {key: last for key, last in series.active.items() if step - last <= WINDOW}
                if math.isfinite(value):
                    series.take(step, value)
        if "missing" in self._limits:
            found += self._missing(now, values)
        if "scaled" in self._limits and any(name in values for name in self._by_kind["grad_in"]):
            found += self._scaled(step, values)
        return found

    def _learnt(self) -> float:
        loss = self._series.get("loss")
        return min(1.0, loss.median / loss.first) if loss is not None and loss.first > 0 and loss.median > 0 else 1.0

    def _missing(self, now: Now, values: Mapping[str, float]) -> Iterator[Alarm]:
        limit, warm_up, key = int(self._limits["missing"]), ONLINE["missing"].warm_up, "alarm.missing"
        for name, series in self._by_kind["grad"].items():
            if name in values:
                series.active.pop(key, None)
                series.streak = series.streak + 1 if series.last_step >= now.step - 1 else 0
            elif key not in series.active:
                said = missing(key, warm_up, series, now.step - series.last_step, limit, now)
                if said:
                    series.active[key] = math.inf
                    yield Alarm("missing", name, now.step, said)

    def _reset(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield a kind of states of an optimizer that fell together: one alone may cross zero."""
        kinds: dict[str, list[tuple[float, str]]] = {}
        for name, series in self._by_kind["state"].items():
            value = values.get(name, math.nan)
            if series.count >= ONLINE["reset"].warm_up and series.last > 0 and math.isfinite(value):
                kinds.setdefault(state_kind(name), []).append((value / series.last, name))
        for kind, parts in kinds.items():
            middle, name = sorted(parts)[len(parts) // 2]
            if len(parts) > 2 and 0 <= middle * self._limits["reset"] <= 1:
                last = self._series[name]
                numbers = {"value": middle * last.last, "before": last.last, "then": last.last_step}
                yield Alarm("reset", name, step, say("alarm.reset", step=step, kind=kind, **numbers))

    def _scaled(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield gradients of which another part enters the optimizer than of the others."""
        limit, parts, key = self._limits["scaled"], dict[str, float](), "alarm.scaled"
        for name in self._by_kind["grad"]:
            arrived = values.get(name, 0.0)
            part = values.get(series_name.entered(name), arrived) / arrived if arrived > 0 else math.nan
            if math.isfinite(part):
                parts[name] = part
        middle = statistics.median(parts.values()) if len(parts) > 2 else 0.0
        for name, part in parts.items():
            series = self._series[name]
            is_apart = middle > 0 < part and not middle / limit < part < middle * limit
            self._apart[name] = self._apart.get(name, 0) + 1 if is_apart else 0
            if self._apart[name] == 3 and key not in series.active:
                if series.count >= ONLINE["scaled"].warm_up:
                    yield Alarm(
                        "scaled", series_name.entered(name), step, say(key, part=part, others=middle, step=step)
                    )
                series.active[key] = math.inf  # also where it was so from the first step on


class RunningRules:
    """msprobe's rules with their thresholds: each looks at a number and the running mean of its series."""

    def __init__(self, rules: Sequence[tuple[str, float | None]]) -> None:
        self._rules = rules
        self._means: dict[tuple[str, str], float] = {}

    def look(self, step: int, tag: str, op: str, value: float) -> Sentence:
        """Return what the first rule that holds says about the number ``op`` of a tensor; else nothing."""
        mean = self._means.setdefault((tag, op), abs(value))
        self._means[tag, op] = _KEPT * mean + (1 - _KEPT) * abs(value)
        for rule, threshold in self._rules:
            ops, holds = MSPROBE[rule]
            if (not ops or op in ops) and holds(value, mean, threshold):
                return say("alarm.msprobe", rule=rule, tag=tag, op=op, value=value, mean=mean, step=step)
        return NOTHING


def series_hits(
    name: str, series: Mapping[int, float], points: Mapping[int, Point], steps: Sequence[int],
    limits: Mapping[str, float],
) -> list[Alarm]:  # fmt: skip
    """Return what the rules say about one tensor of dumps on one rank, each once."""
    kinds, found = kinds_of_tensor(name), list[Alarm]()
    history = History(kinds, keep=None, warm=1)
    rules: list[_Chosen] = [
        (rule, condition.warm_up, limits[rule], condition.look)
        for rule, condition in sorted(IN_DUMPS.items(), key=lambda item: item[1].least)
        if condition.look and condition.kinds & kinds and len(steps) >= condition.least
    ]
    for step, value in series.items() if rules else ():
        now = Now(step, point=points.get(step, Point()))
        hits = list(_holding(name, history, rules, value, now))
        if hits and hits[0].said.key == "trend.nan":  # the other numbers say no more than this one
            return hits[:1]
        found += hits
        history.take(step, value)
    absent = (step for step in steps if step > min(series) and step not in series)
    gap = next(absent, None) if rules and limits["missing"] and len(steps) >= LEAST_STEPS else None
    if gap is not None:
        found.append(Alarm("missing", name, gap, missing("trend.missing", 0, history, 1, 1, Now(gap))))
    return found


def layer_hits(trend: Trend, limits: Mapping[str, float]) -> Iterator[tuple[str, Rank, Alarm]]:
    """Yield (tensor, rank, hit) where one of many layers of one kind is far from the others in one step."""
    kinds: dict[tuple[str, Rank], list[str]] = {}
    for name, by_rank in trend.items():
        kind = layer_kind(name)
        for rank in by_rank if kind else ():
            kinds.setdefault((kind, rank), []).append(name)
    for (_, rank), names in kinds.items():
        said: set[str] = set()
        for step in sorted({step for name in names for step in trend[name][rank]}):
            logs = {name: math.log(value) for name in names if 0 < (value := trend[name][rank].get(step, 0)) < math.inf}
            for name, own in logs.items() if len(logs) >= LEAST_STEPS else ():
                others = [value for other, value in logs.items() if other != name]
                if name not in said and is_far(own, others, limits["one layer apart"]):
                    said.add(name)
                    numbers = {"value": math.exp(own), "before": math.exp(statistics.median(others))}
                    sentence = say("trend.layer", step=step, count=len(others), **numbers)
                    yield name, rank, Alarm("one layer apart", name, step, sentence)
