# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Lets the rules look at the numbers of a training, step by step, for the monitor and those who read its rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from probe.series.alarm import Alarm, Chosen, chosen, holding
from probe.series.call_file import Rows
from probe.series.call_rules import CallRules, tensors_of_rows, tensors_of_series
from probe.series.group_rules import FallenStates, LossBalance, MissingGradients, ScaledGradients
from probe.series.history import WINDOW, History, Now
from probe.series.phases import Phases
from probe.series.rules import ONLINE, Condition
from probe.series.series_name import is_learning_rate, kind_of

_ROUNDING = 1e-5  # so small a part of the step's largest update is rounding: a bias before a BatchNorm has no gradient
_EXPERT = "expert"  # in the names of the parameters of experts
#: a loss falls fast below so large a part of the median of its last values
_FAST = 0.5
_LOST = 1e-6  # a smaller part of a parameter is lost when it is added in float32


class _Looked(NamedTuple):
    """A series, and the rules that look at it."""

    series: History
    rules: list[Chosen]


class OnlineRules:
    """Looks at the numbers of each step, beside the last of each series. A rule without threshold does not look."""

    def __init__(self, thresholds: Mapping[str, float | None] | None = None) -> None:
        self._limits = _limits(thresholds or {})
        self._series: dict[str, History] = {}
        self._calls = CallRules(self._limits)
        self._is_of_call: dict[str, bool] = {}  # by the names of series
        #: kind -> the conditions of the rules that look at its series
        self._conditions: dict[str, list[tuple[str, Condition]]] = {}
        for name, rule in ONLINE.items():
            for kind in rule.kinds if name in self._limits else ():
                self._conditions.setdefault(kind, []).append((name, rule))
        self._of_kind: dict[str, list[Chosen]] = {}  # the rules that the series of a kind share
        self._rules: dict[str, list[Chosen]] = {}  # those of each series
        self._rates: list[str] = []  # the series of learning rates
        self._rate = 0.0  # the largest learning rate of the last step that has one
        self._path = 0.0  # the sum of the learning rates
        self._phases = Phases()
        self._phase = 0
        #: phase -> its series of losses: those of another phase tell nothing of its losses
        self._losses: dict[int, dict[str, _Looked]] = {}
        self._gradients: dict[str, History] = {}
        self._entered: dict[str, History] = {}  # gradients that enter an optimizer
        self._states: dict[str, History] = {}
        self._updates: dict[str, History] = {}
        self._missing = MissingGradients(self._limit("missing"), self._gradients)
        self._reset = FallenStates(self._limit("reset"), self._states)
        self._balance = LossBalance()
        self._scaled = ScaledGradients(self._limit("scaled"), self._gradients, self._entered)

    def feed(
        self, step: int, values: Mapping[str, float], calls: Rows = MappingProxyType({})
    ) -> list[Alarm]:
        """Take the numbers of a step; return the rules that hold from this step on.

        The numbers of calls are among ``values``, or in ``calls`` by their entries.
        """
        of_calls = self._of_calls(values)
        others = values
        if of_calls:
            others = {name: value for name, value in values.items() if name not in of_calls}
        entries = {**tensors_of_series(of_calls), **tensors_of_rows(calls)}
        found = self._of_others(step, others)
        found += self._calls.feed(step, entries)
        return found

    def _of_others(self, step: int, values: Mapping[str, float]) -> list[Alarm]:
        """Return what the rules say about the series that no call has."""
        found: list[Alarm] = []
        self._begin_phase(values)
        self._rate = max(
            (values[name] for name in self._rates if name in values), default=self._rate
        )
        if math.isfinite(self._rate):
            self._path += self._rate
        now = Now(step, self._learnt(), self._floor(values), self._is_learning(), self._path)
        losses = {
            name: value
            for name, value in values.items()
            if name.startswith("loss") and kind_of(name) == "loss"  # the first is quick
        }
        self._balance.take(losses)
        if "reset" in self._limits:
            found += self._reset.look(now, values)
        for alarm in self._of_single(now, values):
            if alarm.rule == "rising" and self._balance.falls_beside(alarm.series):
                # it is told later, once no other loss falls
                self._series[alarm.series].active.pop(alarm.said.key, None)
            else:
                found.append(alarm)
        if "missing" in self._limits:
            found += self._missing.look(now, values)
        if "scaled" in self._limits:
            found += self._scaled.look(now, values)
        return found

    def _begin_phase(self, values: Mapping[str, float]) -> None:
        """Go on with the losses of the phase that a step is of."""
        phase = self._phases.of([name for name in values if name.endswith(".grad")])
        if phase == self._phase:
            return
        names = [name for name, series in self._series.items() if series.kinds == "loss"]
        kept = {name: _Looked(self._series.pop(name), self._rules.pop(name, [])) for name in names}
        self._losses[self._phase] = kept
        for name, looked in self._losses.pop(phase, {}).items():
            self._series[name] = looked.series
            self._rules[name] = looked.rules
        self._phase = phase
        self._balance = LossBalance()

    def _of_single(self, now: Now, values: Mapping[str, float]) -> list[Alarm]:
        """Return what the rules say about each series alone."""
        found: list[Alarm] = []
        step = now.step
        vanishing = self._limit("vanishing") * now.learnt
        for name, value in values.items():
            series = self._series.get(name)
            if series is None:
                series = self._new_series(name)
            if (
                vanishing * series.first < value < 2 * series.highest
                and series.kinds == "grad"
                and not series.active
            ):
                series.take(step, value)  # between these no rule of gradients holds
                continue
            rules = self._rules.get(name)
            if rules is None:
                continue
            is_update = series.kinds == "update"
            here = _beside_parameter(now, name, values) if is_update else now
            found += holding(name, series, rules, value, here)
            if series.active:  # a rule that held a moment ago is not over
                active = series.active.items()
                series.active = {key: last for key, last in active if step - last <= WINDOW}
            if math.isfinite(value):
                series.take(step, value)
        return found

    def _new_series(self, name: str) -> History:
        """Return the history of a new series, and choose the rules that look at it."""
        kind = kind_of(name)
        if is_learning_rate(name):
            self._rates.append(name)
        series = History(kind)
        self._series[name] = series
        groups = {
            "grad": self._gradients,
            "grad_in": self._entered,
            "state": self._states,
            "update": self._updates,
        }
        if kind in groups:
            groups[kind][name] = series
        conditions = self._conditions.get(kind)
        if conditions is not None:
            has_own_rules = any(condition.new_rule for _, condition in conditions)
            if has_own_rules or kind not in self._of_kind:
                self._of_kind[kind] = chosen(conditions, self._limits)
            rules = self._of_kind[kind]
            self._rules[name] = _of_expert(rules) if _EXPERT in name.lower() else rules
        return series

    def _limit(self, rule: str) -> float:
        """Return the threshold of a rule; 0.0 where it does not look."""
        return self._limits.get(rule, 0.0)

    def _floor(self, values: Mapping[str, float]) -> float:
        """Return the largest update that may be rounding; 0.0 where no known series of updates has a value."""
        if self._updates.keys().isdisjoint(values):
            return 0.0
        updates = (value for name, value in values.items() if name.endswith(".update"))
        return _ROUNDING * max(updates)

    def _of_calls(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the numbers of calls among these."""
        known = self._is_of_call
        for name in values:
            if name not in known:
                known[name] = kind_of(name) == "call"
        return {name: value for name, value in values.items() if known[name]}

    def _learnt(self) -> float:
        """Return the part of the first loss that is left; that of a policy is below zero."""
        loss = self._series.get("loss")
        if loss is None or not loss.first * loss.median > 0:
            return 1.0
        return min(1.0, loss.median / loss.first)

    def _is_learning(self) -> bool:
        """Return whether the loss falls fast."""
        loss = self._series.get("loss")
        return loss is not None and 0 < loss.last < _FAST * loss.median


def _of_expert(rules: Sequence[Chosen]) -> list[Chosen]:
    """Return the rules of an expert's parameters: in some steps no token goes to it, so its gradients are zeros."""
    return [
        rule._replace(threshold=max(rule.threshold, WINDOW)) if rule.rule == "zeros" else rule
        for rule in rules
    ]


def _limits(thresholds: Mapping[str, float | None]) -> dict[str, float]:
    """Return the thresholds of the rules that look: these, and the defaults of others."""
    limits: dict[str, float | None] = {name: rule.threshold for name, rule in ONLINE.items()}
    limits.update(thresholds)
    return {name: limit for name, limit in limits.items() if limit is not None}


def _beside_parameter(now: Now, name: str, values: Mapping[str, float]) -> Now:
    """Return the circumstances of an update: one that the rounding of its parameter takes is noise too."""
    parameter = f"{name[: -len('update')]}param"
    lost = _LOST * values.get(parameter, 0.0)
    return now._replace(floor=max(now.floor, lost))
