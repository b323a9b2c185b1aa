# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Lets the rules look at the series of dumps, which are complete: ``probe trend`` and the page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from probe.findings.sentence import say
from probe.series.alarm import Alarm, chosen, holding
from probe.series.looks import LEAST_STEPS, History, Now, Point, is_far
from probe.series.rules import IN_DUMPS
from probe.series.series_name import kinds_of_tensor, layer_kind
from probe.store.file_names import Rank

Trend = dict[str, dict[Rank, dict[int, float]]]  # tensor -> rank -> step -> number
Points = dict[str, dict[Rank, dict[int, Point]]]  # tensor -> rank -> step -> further numbers
_APART = "one layer apart"


def series_hits(
    name: str,
    series: Mapping[int, float],
    points: Mapping[int, Point],
    steps: Sequence[int],
    limits: Mapping[str, float],
) -> list[Alarm]:
    """Return what the rules say about one tensor of dumps on one rank, each once."""
    kinds = kinds_of_tensor(name)
    found = list[Alarm]()
    history = History(kinds, keep=None, warm=1)
    conditions = sorted(IN_DUMPS.items(), key=lambda item: item[1].least)
    fitting = (
        (rule, condition)
        for rule, condition in conditions
        if condition.kinds & kinds and len(steps) >= condition.least
    )
    rules = chosen(fitting, limits)
    for step, value in series.items() if rules else ():
        now = Now(step, point=points.get(step, Point()))
        hits = list(holding(name, history, rules, value, now))
        if hits and hits[0].said.key == "trend.nan":  # the other numbers say no more than this one
            return hits[:1]
        found += hits
        history.take(step, value)
    absent = (step for step in steps if step > min(series) and step not in series)
    gap = next(absent, None) if rules and limits["missing"] and len(steps) >= LEAST_STEPS else None
    if gap is not None:
        facts = {"last": history.last_step, "step": gap}
        found.append(Alarm("missing", name, gap, say("trend.missing", **facts)))
    return found


def layer_hits(trend: Trend, limits: Mapping[str, float]) -> Iterator[tuple[str, Rank, Alarm]]:
    """Yield (tensor, rank, hit) where one of many layers of one kind is far from the others in one step."""
    kinds: dict[tuple[str, Rank], list[str]] = {}
    for name, by_rank in trend.items():
        kind = layer_kind(name)
        for rank in by_rank if kind else ():
            kinds.setdefault((kind, rank), []).append(name)
    for (_, rank), names in kinds.items():
        series = {name: trend[name][rank] for name in names}
        for alarm in _layers_apart(series, limits[_APART]):
            yield alarm.series, rank, alarm


def _layers_apart(series: Mapping[str, Mapping[int, float]], limit: float) -> Iterator[Alarm]:
    """Yield the layers of one kind that are far from the others, each in its first such step."""
    told: set[str] = set()
    for step in sorted(set().union(*series.values())):
        values = {name: of_steps.get(step, 0.0) for name, of_steps in series.items()}
        logs = {name: math.log(value) for name, value in values.items() if 0 < value < math.inf}
        for name, own in logs.items() if len(logs) >= LEAST_STEPS else ():
            others = [value for other, value in logs.items() if other != name]
            if name in told or not is_far(own, others, limit):
                continue
            told.add(name)
            said = say(
                "trend.layer",
                step=step,
                count=len(others),
                value=math.exp(own),
                before=math.exp(statistics.median(others)),
            )
            yield Alarm(_APART, name, step, said)
