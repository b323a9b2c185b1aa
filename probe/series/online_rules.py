# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Lets the rules look at the numbers of a training, step by step, for the monitor and those who read its rows."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from probe.findings.sentence import say
from probe.series import series_name
from probe.series.alarm import Alarm, Chosen, holding
from probe.series.call_file import Rows
from probe.series.call_rules import CallRules, tensors_of_rows, tensors_of_series
from probe.series.looks import WINDOW, History, Now, missing
from probe.series.rules import ONLINE
from probe.series.series_name import kind_of, state_kind

_ROUNDING = 1e-5  # so small a part of the step's largest update is rounding: a bias before a BatchNorm has no gradient
_LOST = 1e-6  # a smaller part of a parameter is lost when it is added in float32


class OnlineRules:
    """Looks at the numbers of each step, beside the last of each series. A rule without threshold does not look."""

    def __init__(self, thresholds: Mapping[str, float | None] | None = None) -> None:
        limits = {**{name: rule.threshold for name, rule in ONLINE.items()}, **(thresholds or {})}
        self._limits = {name: limit for name, limit in limits.items() if limit is not None}
        self._series: dict[str, History] = {}
        self._calls = CallRules(self._limits)
        self._is_of_call: dict[str, bool] = {}  # by the names of series
        kinds = ("grad", "grad_in", "state", "update")
        self._by_kind: dict[str | frozenset[str], dict[str, History]] = {kind: {} for kind in kinds}
        self._of_kind: dict[str | frozenset[str], list[Chosen]] = {}
        for name, rule in ONLINE.items():
            for kind in rule.kinds if name in self._limits else ():
                chosen = self._of_kind.setdefault(kind, [])
                if rule.look:
                    chosen.append(Chosen(name, rule.warm_up, self._limits[name], rule.look))
        self._apart: dict[
            str, int
        ] = {}  # gradients -> steps in a row in which another part entered than of the others

    def feed(
        self, step: int, values: Mapping[str, float], calls: Rows = MappingProxyType({})
    ) -> list[Alarm]:
        """Take the numbers of a step; return the rules that hold from this step on.

        The numbers of calls are among ``values``, or in ``calls`` by their entries.
        """
        found = self._of_calls(values)
        others = values
        if found:
            others = {name: value for name, value in values.items() if name not in found}
        entries = {**tensors_of_series(found), **tensors_of_rows(calls)}
        return [*self._of_others(step, others), *self._calls.feed(step, entries)]

    def _of_others(self, step: int, values: Mapping[str, float]) -> list[Alarm]:
        """Return what the rules say about the series that no call has."""
        found: list[Alarm] = []
        floor = 0.0
        if not self._by_kind["update"].keys().isdisjoint(values):
            floor = _ROUNDING * max(
                value for name, value in values.items() if name.endswith(".update")
            )
        now = Now(step, self._learnt(), floor)
        vanishing = self._limits.get("vanishing", 0.0) * now.learnt
        if "reset" in self._limits and any(
            name in values for name in itertools.islice(self._by_kind["state"], 1)
        ):
            found += self._reset(step, values)
        for name, value in values.items():
            series = self._series.get(name)
            if series is None:
                series = self._series[name] = History(kind_of(name))
                if series.kinds in self._by_kind:
                    self._by_kind[series.kinds][name] = series
            if (
                vanishing * series.first < value < 2 * series.highest
                and series.kinds == "grad"
                and not series.active
            ):
                series.take(step, value)  # between these no rule of gradients holds
            elif (rules := self._of_kind.get(series.kinds)) is not None:
                here = now
                if (
                    series.kinds == "update"
                ):  # one that the rounding of its parameter takes is noise too
                    lost = _LOST * values.get(f"{name[: -len('update')]}param", 0.0)
                    here = now._replace(floor=max(floor, lost))
                found += holding(name, series, rules, value, here)
                if series.active:  # a rule that held a moment ago is not over
                    series.active = {
                        key: last for key, last in series.active.items() if step - last <= WINDOW
                    }
                if math.isfinite(value):
                    series.take(step, value)
        if "missing" in self._limits:
            found += self._missing(now, values)
        if "scaled" in self._limits and any(name in values for name in self._by_kind["grad_in"]):
            found += self._scaled(step, values)
        return found

    def _of_calls(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers of calls among these."""
        known = self._is_of_call
        known.update((name, kind_of(name) == "call") for name in values if name not in known)
        return {name: value for name, value in values.items() if known[name]}

    def _learnt(self) -> float:
        loss = self._series.get("loss")
        return (
            min(1.0, loss.median / loss.first)
            if loss is not None and loss.first > 0 and loss.median > 0
            else 1.0
        )

    def _missing(self, now: Now, values: Mapping[str, float]) -> Iterator[Alarm]:
        limit = int(self._limits["missing"])
        warm_up = ONLINE["missing"].warm_up
        key = "alarm.missing"
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
                yield Alarm(
                    "reset", name, step, say("alarm.reset", step=step, kind=kind, **numbers)
                )

    def _scaled(self, step: int, values: Mapping[str, float]) -> Iterator[Alarm]:
        """Yield gradients of which another part enters the optimizer than of the others."""
        limit = self._limits["scaled"]
        parts = dict[str, float]()
        key = "alarm.scaled"
        for name in self._by_kind["grad"]:
            arrived = values.get(name, 0.0)
            part = (
                values.get(series_name.entered(name), arrived) / arrived
                if arrived > 0
                else math.nan
            )
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
                        "scaled",
                        series_name.entered(name),
                        step,
                        say("alarm.scaled", part=part, others=middle, step=step),
                    )
                series.active[key] = math.inf  # also where it was so from the first step on
