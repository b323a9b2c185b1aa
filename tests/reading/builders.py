# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Dumps that tests of the reading side make by hand, without MindSpore."""

from __future__ import annotations

import json
import math


def tensor(**numbers):
    """Return the record of a tensor, with other numbers than usual where they are given: norm=3.0, Max=9.0."""
    record = {
        "type": "mindspore.Tensor", "dtype": "Float32", "shape": [2, 3],
        "Max": 2.0, "Min": -1.0, "Mean": 0.5, "Norm": 2.0,
    }  # fmt: skip
    return {**record, **{{"norm": "Norm", "mean": "Mean"}.get(key, key): item for key, item in numbers.items()}}


def value(item):
    """Return the record of a plain value."""
    return {"type": type(item).__name__, "value": item}


def forward(inputs, outputs, **kwargs):
    """Return the entry of a forward call."""
    return {"input_args": list(inputs), "input_kwargs": kwargs, "output": list(outputs)}


def write(folder, data, stack=None, construct=None, **header):
    """Write a rank folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None, **header}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}, indent=1))
    (folder / "stack.json").write_text(json.dumps(stack or {}))
    (folder / "construct.json").write_text(json.dumps(construct or {}))
    return folder


def two_runs(folder, ranks=5):
    """Write runs; the second has a fault on rank 2 in step 1, and NaN on rank 3. Rank 4 has the data of rank 0."""
    for run in ("a", "b"):
        for step in (0, 1):
            for rank in range(ranks):
                off = 1.5 if (run, step, rank) == ("b", 1, 2) else 1.0
                last = math.nan if (run, rank) == ("b", 3) else 5.0
                x, y = tensor(norm=10.0 + rank % 4), tensor(norm=2.0 + rank * off)
                data = {
                    "Functional.f.0.forward": forward([x], [y]),
                    "Functional.g.0.forward": forward([y], [tensor(norm=last, Max=last)]),
                    "Cell.fc.Dense.parameters_grad.0": {"output": [tensor(norm=3.0 + step)]},
                }
                write(folder / run / f"step{step}" / f"rank{rank}", data)
    return str(folder / "a"), str(folder / "b")
