# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Answers of one run from the rows of the monitor: alarms of its rules, and the first NaN/Inf in a series."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from probe.findings.sentence import Sentence, say
from probe.naming import ranges
from probe.reading.one_run.health.step import FAULT, HealthFinding
from probe.series.file import RankSeries
from probe.series.looks import LEAST_STEPS
from probe.series.series import Follower


def alarms_of(ranks: Sequence[RankSeries]) -> list[HealthFinding]:
    """Return the alarms of the rules over the rows, in the order of the steps."""
    found = [
        HealthFinding(FAULT, alarm.rule, alarm.said, alarm.series, alarm.step, rank=rank.rank)
        for rank in ranks
        for alarm in Follower().begin(rank)
    ]
    return sorted(found, key=lambda item: -1 if item.step is None else item.step)


def nonfinite_of(ranks: Sequence[RankSeries]) -> list[HealthFinding]:
    """Return the first NaN/Inf of each rank: the series that have it in the earliest such step."""
    return list(_nonfinite(ranks))


def _nonfinite(ranks: Sequence[RankSeries]) -> Iterator[HealthFinding]:
    for rank in ranks:
        for step, values in rank.rows():
            strange = [name for name, value in values.items() if not math.isfinite(value)]
            if strange:
                said = say("rows.nonfinite", series=strange[:5], count=len(strange))
                yield HealthFinding(FAULT, "NaN/Inf", said, strange[0], step, rank=rank.rank)
                break


def gaps_of(ranks: Sequence[RankSeries]) -> list[Sentence]:
    """Return the parts that cannot be known: of fewer rows than rules need, that none of them holds."""
    rows = min((len(rank.steps) for rank in ranks), default=0)
    return [say("gap.rows", rows=rows, least=LEAST_STEPS)] if rows < LEAST_STEPS else []


def said_of(ranks: Sequence[RankSeries]) -> Sentence:
    """Return the scope, as "24 rows of the monitor, steps 0-23, 7 series"."""
    steps = sorted({step for rank in ranks for step in rank.steps})
    names = {name for rank in ranks for name in rank.names}
    rows = sum(len(rank.steps) for rank in ranks)
    numbers = sum(len(values) for rank in ranks for _, values in rank.rows())  # a series may be measured in some rows
    return say("rows.looked", rows=rows, steps=", ".join(ranges(steps)), series=len(names), numbers=numbers)
