# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One statistic of many tensors over steps and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from probe.errors import UsageError
from probe.reading.dump import Dump
from probe.reading.entry_name import parse
from probe.reading.rules import IN_DUMPS, LEAST_STEPS, RULES
from probe.reading.source import DumpFolder, Rank
from probe.reading.trend_rules import Point, Points, Trend, layer_hits, point, series_hits
from probe.reading.updates import is_update
from probe.reading.updates import series as series_of
from probe.reading.values import NUMBERS, real
from probe.reading.work import HERE, Workers, run_units

#: the tensors that are shown unless others are asked for
LIKE = "parameters_grad"
STATISTICS = {key.lower(): key for key in (*NUMBERS, "nan_count", "inf_count", "zero_count")}


class Samples(NamedTuple):
    """The numbers of one step of one rank.

    Attributes:
        step: the step; None where the folder does not say, so that the numbers belong to no series.
        rank: the rank.
        values: tensor -> the statistic.
        points: tensor -> further numbers.
    """

    step: int | None
    rank: Rank
    values: dict[str, float]
    points: dict[str, Point]


def read_samples(folder: DumpFolder, like: str, key: str) -> Samples:
    """Return a statistic of the tensors of a dump whose names contain ``like``.

    Raises:
        UsageError: when the dump cannot be read.
    """
    values: dict[str, float] = {}
    points: dict[str, Point] = {}
    dump = Dump(folder)
    try:
        for name, record in dump.tensors() if folder.step is not None else ():
            value = real(record.get(key)) if like in name else None
            if value is not None:
                shown = _without_states(dump, name)
                values[shown], points[shown] = value, point(shown, record)
        if folder.step is not None and key == "Norm":
            values.update(_of_updates(dump, like))
    finally:
        dump.release()
    return Samples(folder.step, folder.rank, values, points)


def _without_states(dump: Dump, name: str) -> str:
    """Return the name of a tensor; the states of an optimizer are not called parameters."""
    entry, separator, rest = name.partition(".parameters.")
    is_state = separator and is_update(parse(entry), dump.data.get(entry))
    return f"{entry}.states.{rest}" if is_state else name


def _of_updates(dump: Dump, like: str) -> dict[str, float]:
    """Return learning rates and global norms of updates: where they are asked for, and beside gradients."""
    found = {}
    for name, entry in dump.data.items():
        if is_update(parse(name), entry):
            found.update({key: value for key, value in series_of(name, entry) if like in key or like == LIKE})
    return found


def read_all(folders: Sequence[DumpFolder], like: str, stat: str = "norm", workers: Workers = HERE) -> list[Samples]:
    """Return a statistic of the tensors of many dumps.

    Args:
        folders: the dumps.
        like: a part of the names.
        stat: the statistic.
        workers: the processes that work.

    Raises:
        UsageError: when the statistic is unknown, or a dump cannot be read.
    """
    if stat.lower() not in STATISTICS:
        raise UsageError(f"trend: {stat!r} is not allowed. Allowed: {', '.join(STATISTICS)}.")
    units = [(folder, like, STATISTICS[stat.lower()]) for folder in folders]
    return list(run_units(read_samples, units, workers, "reading"))


def series(samples: Sequence[Samples]) -> tuple[Trend, Points]:
    """Return the samples as series, name -> rank -> step -> number, and likewise the further numbers."""
    found: Trend = {}
    points: Points = {}
    for sample in samples:
        if sample.step is None:
            continue
        for name, value in sample.values.items():
            found.setdefault(name, {}).setdefault(sample.rank, {})[sample.step] = value
            if name in sample.points:
                points.setdefault(name, {}).setdefault(sample.rank, {})[sample.step] = sample.points[name]
    return found, points


def collect(folders: Sequence[DumpFolder], like: str, stat: str = "norm") -> Trend:
    """Return a statistic of the tensors whose names contain ``like``: name -> rank -> step -> number.

    Args:
        folders: the dumps.
        like: a part of the names.
        stat: the statistic.

    Raises:
        UsageError: when the statistic is unknown, or no tensor fits.
    """
    found, _ = series(read_all(folders, like, stat))
    if not found:
        raise UsageError(no_tensor(like, stat))
    return found


def no_tensor(like: str, stat: str) -> str:
    """Return the message where no tensor fits."""
    return f"trend: no tensor with {stat} has {like!r} in its name"


class TrendFinding(NamedTuple):
    """A finding of a rule in a series.

    Attributes:
        rule: the rule's name.
        name: the tensor.
        rank: the rank.
        step: the step.
        sentence: one sentence about it.
    """

    rule: str
    name: str
    rank: Rank
    step: int
    sentence: str


_BARS = " .:-=+*#%@"


def findings(
    trend: Trend, steps: Sequence[int], thresholds: Mapping[str, float] | None = None, points: Points | None = None
) -> list[TrendFinding]:
    """Return the findings of the rules; most rules need five recorded steps.

    Args:
        trend: the series, of norms.
        steps: the recorded steps.
        thresholds: rule -> another threshold.
        points: further numbers of the same tensors, which ``collect`` gives; some rules need them.
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
    found = [
        TrendFinding(rule, name, rank, step, f"{rule}: {text} (threshold {limits[rule]:g}; {RULES[rule].source})")
        for name, rank, (rule, step, text) in hits
    ]
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
