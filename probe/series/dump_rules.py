# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Lets the rules look at the series of dumps, which are complete: ``probe trend`` and the page."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from probe.findings.sentence import say
from probe.series.alarm import Alarm, chosen, holding
from probe.series.history import LEAST_STEPS, History, Now, Point
from probe.series.looks import is_far
from probe.series.rules import IN_DUMPS
from probe.series.series_name import GRADIENT, kinds_of_tensor, layer_kind
from probe.store.file_names import Rank

Trend = dict[str, dict[Rank, dict[int, float]]]  # tensor -> rank -> step -> number
Points = dict[str, dict[Rank, dict[int, Point]]]  # tensor -> rank -> step -> further numbers
_APART = "one layer apart"
#: in the names of gradients of a Cell's parameters
_OF_PARAMETERS = ".parameters_grad."
#: steps that are so many times as far apart as others are no neighbours
_GAP = 2
#: a parameter vanishes alone, and its Cell does not, if another one of the Cell has so many times the limit
_ALIVE = 100.0


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
    usual = _usual_distance(steps)
    for step, value in series.items() if rules else ():
        if history.count and step - history.last_step > _GAP * usual:
            history.restart()  # a training changes more in twenty steps than in one
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


def _usual_distance(steps: Sequence[int]) -> int:
    """Return how far apart the recorded steps are that are nearest to each other.

    >>> _usual_distance([0, 1, 2, 22, 23]), _usual_distance([0, 100, 200])
    (1, 100)
    """
    return min((after - before for before, after in zip(steps, steps[1:])), default=1)


def is_usual(
    name: str, rank: Rank, alarm: Alarm, trend: Trend, points: Points, limits: Mapping[str, float]
) -> bool:
    """Return whether a hit is usual beside other gradients: a bias before a norm, or a part of an ended phase."""
    if alarm.rule == "vanishing":
        return _lives_beside(name, rank, alarm.step, trend, points, _ALIVE * limits["vanishing"])
    if alarm.said.key == "trend.missing":
        return _is_of_other_phase(name, rank, alarm, trend)
    return False


def _lives_beside(
    name: str, rank: Rank, step: int, trend: Trend, points: Points, least: float
) -> bool:
    """Return whether another parameter of the Cell has a gradient: an offset in front of a norm has rounding alone."""
    above, mark, _ = name.partition(_OF_PARAMETERS)
    for other, by_rank in trend.items() if mark else ():
        size = points.get(other, {}).get(rank, {}).get(step, Point()).size
        norm = by_rank.get(rank, {}).get(step, 0.0)
        if other.startswith(f"{above}{mark}") and size and norm / math.sqrt(size) > least:
            return True
    return False


def _is_of_other_phase(name: str, rank: Rank, alarm: Alarm, trend: Trend) -> bool:
    """Return whether no gradient of the step is one of the last step that has this one."""
    last = alarm.said.facts["last"]
    gradients = [
        series[rank]
        for other, series in trend.items()
        if rank in series and GRADIENT in kinds_of_tensor(other)
    ]
    now = [series for series in gradients if alarm.step in series]
    return bool(now) and not any(last in series for series in now)


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
