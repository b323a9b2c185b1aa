# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The series of the monitor for other programs: ``probe trend``, the report, msprobe's csv files, TensorBoard."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.naming import ADAM_STATES
from probe.reading.dumps.samples import LIKE
from probe.reading.dumps.tables import extra, write_csv
from probe.reading.one_run.trend import TrendFinding
from probe.series.file import RankSeries
from probe.series.rules import Trend
from probe.series.series import alarms_of
from probe.series.series_name import kind_of, parse, slot_of

#: kind, name, part of the step -> step -> column -> number
_Tables = dict[str, dict[tuple[str, str], dict[int, dict[str, float]]]]


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


def write_tensorboard(ranks: Iterable[RankSeries], folder: str) -> int:
    """Write event files for TensorBoard, in one folder for each rank; return the number of series.

    Raises:
        UsageError: when tensorboard is not installed, or the folder cannot be written.
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


def write_msprobe_csv(ranks: Iterable[RankSeries], folder: str) -> list[str]:
    """Write csv files with the names and columns of msprobe's monitor, in one folder for each rank.

    Returns:
        Their paths.

    Raises:
        UsageError: when one cannot be written.
    """
    written: list[str] = []
    for rank in ranks:
        own = os.path.join(folder, f"rank{rank.rank or 0}")
        tables: _Tables = {}
        for name in sorted(rank.names, key=lambda name: ".grad_in" in name):  # it replaces the one that arrived
            _put(tables, rank, name)
        try:
            os.makedirs(own, exist_ok=True)
            written += [_write(own, kind, table) for kind, table in tables.items()]
        except OSError as error:
            raise UsageError(f"{own} cannot be written: {error.strerror or error}") from error
    return written


def _put(tables: _Tables, rank: RankSeries, name: str) -> None:
    for kind, own, part, column in _places(name):
        rows = tables.setdefault(kind, {}).setdefault((own, part), {})
        for step, value in zip(*(values.tolist() for values in rank[name])):
            rows.setdefault(step, {})[column] = value


def _places(name: str) -> list[tuple[str, str, str, str]]:
    """Return the places of a series in msprobe's files: kind, name, part of the step, column."""
    series, slot = parse(name), slot_of(name)
    column, owner = series.statistic, series.owner
    if slot is not None:
        kind = "actv_grad" if slot.is_backward else "actv"
        return [(kind, f"{slot.path}.{slot.in_cell}", slot.call, column)]
    if series.kind == "grad":
        both = [("grad_unreduced", owner, "", column)]
        return both if column != "norm" else [*both, ("grad_reduced", owner, "", column)]
    kinds = {"grad_in": "grad_reduced", "param": "param_updated", "bias": "param_updated"}
    kind = kinds.get(series.kind) or ADAM_STATES.get(series.state, "")
    return [(kind, owner, "", column)] if kind else []


def _write(folder: str, kind: str, table: dict[tuple[str, str], dict[int, dict[str, float]]]) -> str:
    steps = [step for rows in table.values() for step in rows]
    columns = [
        column
        for column in ("norm", "max", "min")
        if any(column in row for rows in table.values() for row in rows.values())
    ]
    parted = any(part for _, part in table)
    header = ["vpp_stage", "name", "step", *(["micro_step"] if parted else []), *columns]
    path = os.path.join(folder, f"{kind}_{min(steps, default=0)}-{max(steps, default=0)}.csv")
    rows = (
        [
            0,
            _alone(name, part, table),
            step,
            *([part] if parted else []),
            *(_shown(row.get(column)) for column in columns),
        ]
        for step in sorted(set(steps))
        for (name, part), found in table.items()
        for row in [found.get(step)]
        if row is not None
    )
    with open(path, "w", encoding="utf-8", newline="") as file:
        write_csv(file, header, rows)
    return path


def _alone(name: str, part: str, table: Mapping[tuple[str, str], object]) -> str:
    """Return a name without its number where the tensor is alone on its side of the Cell."""
    own, _, number = name.rpartition("_")
    return own if part and number == "0" and (f"{own}_1", part) not in table else name


def _shown(value: float | None) -> float | str | None:
    return "nan" if value is not None and math.isnan(value) else value
