# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Folders with rows of the monitor, made by hand: a training that goes well, and changes of it."""

from __future__ import annotations

import math

from probe.series.file import SeriesFile
from probe.store.file_names import monitor_folder, rank_name


def healthy(step, rank):
    """Return the row of a step of a training that goes well; the gradients of the first steps are large."""
    wave = (step * 7 + rank * 3) % 5 / 100
    norm = 200.0 * math.exp(-step / 8) + 1
    return {
        "loss": 3.0 * math.exp(-step / 40) + 0.5 + wave,
        "optimizer.global_norm": norm + wave,
        "optimizer.learning_rate": 0.001,
        "fc.weight.grad": 0.4 + wave,
        "out.weight.grad": 0.2 + wave,
        "fc.weight.param": 4.0,
        "fc.weight.update": 0.001 + wave / 1000,
        "seconds": 0.1,
    }


def spike(step, rank):
    """Return a row of a training whose loss is large in step 45 on rank 0."""
    row = healthy(step, rank)
    return {**row, "loss": 34_248.0} if (step, rank) == (45, 0) else row


def broken(step, rank):
    """Return a row of a training whose last rank has NaN from step 50 on, and Inf first; the loss is large before."""
    row = spike(step, rank)
    if step < 50 or rank == 0:
        return row
    return {**row, "loss": math.inf if step == 50 else math.nan, "out.weight.grad": math.nan}


def write_rows(folder, row=healthy, steps=60, ranks=2, first=0):
    """Write rows of the monitor into a folder, or append them; return it."""
    for rank in range(ranks):
        file = SeriesFile(monitor_folder(str(folder), rank_name(rank if ranks > 1 else None)))
        for step in range(first, first + steps):
            file.write(step, row(step, rank))
        file.close()
    return folder
