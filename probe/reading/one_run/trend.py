# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe trend``: the findings of the rules in series of dumps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probe.findings.finding import Finding
from probe.findings.sentence import Sentence, say
from probe.series.looks import LEAST_STEPS
from probe.series.rules import Points, Trend, layer_hits, series_hits
from probe.series.table import IN_DUMPS, RULES
from probe.store.file_names import Rank


@dataclass(frozen=True)
class TrendFinding(Finding):
    """A finding of a rule in a series.

    Attributes:
        rule: the rule's name.
        name: the tensor.
        rank: the rank.
        step: the step.
        said: one sentence about it.
    """

    rule: str
    name: str
    rank: Rank
    step: int
    said: Sentence


_BARS = " .:-=+*#%@"


def findings(
    trend: Trend, steps: Sequence[int], thresholds: Mapping[str, float] | None = None, points: Points | None = None
) -> list[TrendFinding]:
    """Return the findings of the rules; most rules need five recorded steps.

    The series are of norms. ``points`` has further numbers of the same tensors, which some rules need.
    """
    limits = {name: (thresholds or {}).get(name, rule.threshold) for name, rule in IN_DUMPS.items()}
    hits = [
        (name, rank, hit)
        for name, by_rank in trend.items()
        for rank, series in by_rank.items()
        for hit in series_hits(name, series, (points or {}).get(name, {}).get(rank, {}), steps, limits)
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
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] if math.isfinite(value) else "!" for value in values)
