# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The series of the monitor for other programs: ``probe trend``, the report, TensorBoard."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.dumps.samples import LIKE
from probe.reading.dumps.tables import extra
from probe.reading.one_run.trend import TrendFinding
from probe.series.file import RankSeries
from probe.series.rules import Trend
from probe.series.series import alarms_of
from probe.series.series_name import kind_of, parse


def is_wanted(name: str, like: str, stat: str) -> bool:
    """Return whether ``probe trend`` shows a series.

    >>> is_wanted("fc.weight.grad", "parameters_grad", "norm"), is_wanted("fc.weight.grad.max", "fc", "norm")
    (True, False)
    """
    if stat != "norm":
        return name.endswith(f".{stat}") and (like in name or like == LIKE)
    if like == LIKE:
        return kind_of(name) in ("grad", "loss", "total")
    return like in name and parse(name).statistic == "norm"


def trend_of(
    ranks: Iterable[RankSeries], like: str, stat: str, thresholds: Mapping[str, float]
) -> tuple[Trend, list[TrendFinding]]:
    """Return the series that ``probe trend`` shows, and what the rules say about them."""
    trend: Trend = {}
    found: list[TrendFinding] = []
    for rank in ranks:
        names = [name for name in rank.names if is_wanted(name, like, stat.lower())]
        for name in names:
            steps, values = rank[name]
            trend.setdefault(name, {})[rank.rank] = dict(zip(steps.tolist(), values.tolist()))
        found += [item for item in findings_of(rank, thresholds) if item.name in names]
    return trend, found


def findings_of(rank: RankSeries, thresholds: Mapping[str, float] | None = None) -> list[TrendFinding]:
    """Return what the rules say about the series of a rank."""
    found = []
    for alarm in alarms_of(rank, thresholds):
        said = say("trend.alarm", rule=alarm.rule, said=alarm.said)
        found.append(TrendFinding(alarm.rule, alarm.series, rank.rank, alarm.step, said))
    return found


def lines_of(rank: RankSeries, name: str) -> list[list[Any]]:
    """Return a series as the report draws it: [[step, number], ...]; NaN and Inf are texts."""
    steps, values = rank[name]
    return [
        [step, value if math.isfinite(value) else str(value)] for step, value in zip(steps.tolist(), values.tolist())
    ]


def write_tensorboard(ranks: Iterable[RankSeries], folder: str) -> int:
    """Write event files for TensorBoard, in one folder for each rank; return the number of series.

    Raise UsageError when tensorboard is not installed, or the folder cannot be written.
    """
    writers = extra("tensorboard.summary", "tensorboard")
    count = 0
    try:
        for rank in ranks:
            writer = writers.Writer(os.path.join(folder, f"rank{'' if rank.rank is None else rank.rank}"))
            for name in rank.names:
                for step, value in zip(*(column.tolist() for column in rank[name])):
                    writer.add_scalar(name, value, step)
                count += 1
            writer.close()
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return count
