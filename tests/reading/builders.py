# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Dumps that tests of the reading side make by hand, without MindSpore."""

from __future__ import annotations

import json


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
