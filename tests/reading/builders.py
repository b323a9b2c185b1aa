# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Dumps that tests of the reading side make by hand, without MindSpore."""

from __future__ import annotations

import json


def tensor(mean=0.5, norm=2.0, shape=(2, 3), dtype="Float32", **more):
    """Return the record of a tensor."""
    high, low = more.pop("Max", abs(mean) * 2 + 1.0), more.pop("Min", -abs(mean) - 1.0)
    return {
        "type": "mindspore.Tensor", "dtype": dtype, "shape": list(shape), "Max": high, "Min": low, "Mean": mean,
        "Norm": norm, **more,
    }  # fmt: skip


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
