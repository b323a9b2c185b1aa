# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe trend``: the findings of the rules in series of dumps, and those of the monitor for other programs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from probe.errors import UsageError
from probe.findings.sentence import Finding, Sentence, as_json, say
from probe.findings.system import reason_of
from probe.reading.dumps.names import Names
from probe.reading.dumps.samples import LIKE
from probe.reading.dumps.tables import extra
from probe.series.dump_rules import Points, Trend, is_usual, layer_hits, series_hits
from probe.series.file import RankSeries
from probe.series.history import LEAST_STEPS
from probe.series.neighbour import alarms_of_all
from probe.series.rules import IN_DUMPS, RULES
from probe.series.series_name import kind_of, parse
from probe.store.file_names import Rank

_BARS = " .:-=+*#%@"
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class TrendFinding(Finding):
    """A finding of a rule in a series."""

    rule: str  # the rule's name
    name: str  # the tensor
    rank: Rank
    step: int
    said: Sentence  # one sentence about it


def findings(
    trend: Trend,
    steps: Sequence[int],
    thresholds: Mapping[str, float] | None = None,
    points: Points | None = None,
) -> list[TrendFinding]:
    """Return the findings of rules in series of norms; ``points`` has further numbers. Most rules need five steps."""
    limits = {name: (thresholds or {}).get(name, rule.threshold) for name, rule in IN_DUMPS.items()}
    hits = [
        (name, rank, hit)
        for name, by_rank in trend.items()
        for rank, series in by_rank.items()
        for hit in series_hits(
            name, series, (points or {}).get(name, {}).get(rank, {}), steps, limits
        )
        if not is_usual(name, rank, hit, trend, points or {}, limits)
    ]
    if len(steps) >= LEAST_STEPS:
        hits += layer_hits(trend, limits)
    found = []
    for name, rank, hit in hits:
        origin = {"threshold": limits[hit.rule], "source": RULES[hit.rule].source}
        said = say("trend.finding", rule=hit.rule, said=hit.said, **origin)
        found.append(TrendFinding(hit.rule, name, rank, hit.step, said))
    return sorted(found, key=lambda item: item.step)


def sparkline(values: Sequence[float]) -> str:
    """Return a line of letters that rises and falls with the numbers; "!" is NaN or Inf.

    >>> sparkline([1.0, 2.0, 4.0, float("nan")])
    ' -@!'
    """
    finite = [value for value in values if math.isfinite(value)]
    low = min(finite, default=0.0)
    high = max(finite, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(
        _BARS[round((value - low) * scale)] if math.isfinite(value) else "!" for value in values
    )


def is_wanted(name: str, names: Names, stat: str) -> bool:
    """Return whether ``probe trend`` shows a series.

    >>> is_wanted("fc.weight.grad", Names("parameters_grad"), "norm"), is_wanted("fc.b.grad.max", Names("fc"), "norm")
    (True, False)
    """
    is_default = names == Names(LIKE)
    is_named = is_default or names.fits(name, parse(name).owner)
    if stat != "norm":
        return name.endswith(f".{stat}") and is_named
    if is_default:
        return kind_of(name) in ("grad", "loss", "total")
    return is_named and parse(name).statistic == "norm"


def trend_of(
    ranks: Sequence[RankSeries], asked: Names, stat: str, thresholds: Mapping[str, float]
) -> tuple[Trend, list[TrendFinding]]:
    """Return the series that ``probe trend`` shows, and what the rules say about them."""
    trend: Trend = {}
    for rank in ranks:
        names = [name for name in rank.names if is_wanted(name, asked, stat.lower())]
        for name in names:
            steps, values = rank[name]
            trend.setdefault(name, {})[rank.rank] = dict(zip(steps.tolist(), values.tolist()))
    return trend, [
        item for item in findings_of(ranks, thresholds) if item.rank in trend.get(item.name, {})
    ]


def findings_of(
    ranks: Sequence[RankSeries], thresholds: Mapping[str, float] | None = None
) -> list[TrendFinding]:
    """Return what the rules say about the series of all ranks."""
    found = []
    for rank, alarm in alarms_of_all(ranks, thresholds):
        said = say("trend.alarm", rule=alarm.rule, said=alarm.said)
        found.append(TrendFinding(alarm.rule, alarm.series, rank, alarm.step, said))
    return found


def thinned(items: Sequence[_Item], most: int, number: Callable[[_Item], float]) -> Sequence[_Item]:
    """Return at most so many of many items; of each group NaN or the farthest from zero, so that no peak is lost.

    >>> thinned([1.0, 2.0, 9.0, 3.0], 2, float), thinned([1.0, 2.0], 2, float)
    ([2.0, 9.0], [1.0, 2.0])
    """
    if len(items) <= most:
        return items
    size = -(-len(items) // most)
    groups = [items[place : place + size] for place in range(0, len(items), size)]
    return [max(group, key=lambda item: _weight(number(item))) for group in groups]


def _weight(value: float) -> tuple[bool, float]:
    return math.isnan(value), abs(value)


def lines_of(rank: RankSeries, name: str, most: int) -> list[list[Any]]:
    """Return a series as the report draws it, with at most so many points: [[step, number], ...]; NaN/Inf are texts."""
    pairs = list(zip(*(column.tolist() for column in rank[name])))
    kept = thinned(pairs, most, itemgetter(1))
    return [[step, as_json(value)] for step, value in kept]


def write_tensorboard(ranks: Iterable[RankSeries], folder: str) -> int:
    """Write event files, in a folder for each rank; return the number of series. Raise UsageError when that fails."""
    writers = extra("tensorboard.summary", "tensorboard")
    count = 0
    try:
        for rank in ranks:
            writer = writers.Writer(
                os.path.join(folder, f"rank{'' if rank.rank is None else rank.rank}")
            )
            for name in rank.names:
                for step, value in zip(*(column.tolist() for column in rank[name])):
                    writer.add_scalar(name, value, step)
                count += 1
            writer.close()
    except OSError as error:
        raise UsageError(say("error.unwritable", path=folder, reason=reason_of(error))) from error
    return count
