# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One statistic of many tensors over steps and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probe.errors import UsageError
from probe.process.progress import progress
from probe.reading.dump import Dump
from probe.reading.source import Rank
from probe.reading.values import NUMBERS, real

if TYPE_CHECKING:
    from probe.reading.run import Run

#: tensor -> rank -> step -> number
Trend = dict[str, dict[Rank, dict[int, float]]]

STATISTICS = {key.lower(): key for key in (*NUMBERS, "nan_count", "inf_count", "zero_count")}


def collect(run: Run, like: str, stat: str = "norm") -> Trend:
    """Return a statistic of the tensors whose names contain ``like``: name -> rank -> step -> number.

    Raises:
        UsageError: when the statistic is unknown, or no tensor fits.
    """
    if stat.lower() not in STATISTICS:
        raise UsageError(f"trend: {stat!r} is not allowed. Allowed: {', '.join(STATISTICS)}.")
    key = STATISTICS[stat.lower()]
    found: Trend = {}
    for folder in progress(run.folders, "reading"):
        if folder.step is None:
            continue
        for name, record in Dump(folder).tensors():
            value = real(record.get(key)) if like in name else None
            if value is not None:
                found.setdefault(name, {}).setdefault(folder.rank, {})[folder.step] = value
    if not found:
        raise UsageError(f"trend: no tensor with {stat} has {like!r} in its name")
    return found
