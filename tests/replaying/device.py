# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps as a precise device would write them: outputs are computed in float64 by numpy, and rounded once."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np

KINDS = {
    "Float32": np.float32,
    "Float16": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Int32": np.int32,
    "Int64": np.int64,
}
ROUNDING = {"Float32": 2.0**-23, "Float16": 2.0**-10, "BFloat16": 2.0**-7}


class Device:
    """Writes entries with arrays.

    Args:
        folder: the dump_path.
    """

    def __init__(self, folder):
        self.path = folder
        self.rank = folder / "step0" / "rank"
        self.arrays = self.rank / "dump_tensor_data"
        self.arrays.mkdir(parents=True)
        self.data = {}

    def tensor(self, name, values, dtype):
        """Save an array, and return its record."""
        values = np.asarray(values).astype(KINDS[dtype])
        np.save(
            self.arrays / f"{name}.npy",
            values.astype(np.float32) if dtype == "BFloat16" else values,
        )
        return {
            "type": "mindspore.Tensor",
            "dtype": dtype,
            "shape": list(values.shape),
            "data_name": f"{name}.npy",
        }

    def forward(self, key, inputs, outputs, dtype, kwargs=None, number=0, **parts):
        """Add a forward entry; inputs and outputs are arrays or records."""
        name = f"{key}.{number}.forward"
        self.data[name] = {
            "input_args": self._records(f"{name}.input", inputs, dtype),
            "input_kwargs": kwargs or {},
            "output": self._records(f"{name}.output", outputs, dtype),
            **parts,
        }

    def backward(self, key, inputs, outputs, dtype, number=0):
        """Add a backward entry."""
        name = f"{key}.{number}.backward"
        self.data[name] = {
            "input": self._records(f"{name}.input", inputs, dtype),
            "output": self._records(f"{name}.output", outputs, dtype),
        }

    def write(self):
        """Write dump.json."""
        head = {
            "task": "tensor",
            "level": "L1",
            "framework": "mindspore",
            "dump_data_dir": str(self.arrays),
        }
        (self.rank / "dump.json").write_text(json.dumps({**head, "data": self.data}))
        return self.path

    def _records(self, name, values, dtype):
        return [
            self.tensor(f"{name}.{i}", item, "Int32" if item.dtype.kind == "i" else dtype)
            if isinstance(item, np.ndarray)
            else item
            for i, item in enumerate(values)
        ]


def number(value):
    """Return the record of a plain value."""
    return {"type": type(value).__name__, "value": value}


def rounded(values, dtype):
    """Return values as a dtype holds them, in float64."""
    return np.asarray(values).astype(KINDS[dtype]).astype(np.float64)


def softmax(x, axis=-1):
    """Return softmax in float64."""
    parts = np.exp(x - x.max(axis, keepdims=True))
    return parts / parts.sum(axis, keepdims=True)


def normed(x, weight, bias, eps):
    """Return the layer norm over the last axis in float64."""
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt((away * away).mean(-1, keepdims=True) + eps) * weight + bias


def record(folder, dtype):
    """Write a dump of operations of many kinds, and return it; layer norms and sums of mint have no kernel on CPU."""
    rng = np.random.RandomState(3)

    def draw(*shape):
        return rounded(rng.randn(*shape), dtype)

    device = Device(folder)
    x, y, w, sens = draw(16, 64), draw(16, 64), draw(64, 16), draw(16, 16)
    one, zero = draw(64), draw(64)
    for key, function in (
        ("exp", np.exp),
        ("tanh", np.tanh),
        ("square", np.square),
        ("relu", lambda v: np.maximum(v, 0)),
    ):
        device.forward(f"Functional.{key}", [x], [function(x)], dtype)
    device.forward("Functional.softmax", [x, number(-1)], [softmax(x)], dtype)
    device.forward("Functional.matmul", [x, w], [x @ w], dtype)
    device.backward("Functional.matmul", [sens], [sens @ w.T, x.T @ sens], dtype)
    device.forward("Tensor.__add__", [x, y], [x + y], dtype)
    device.forward("Functional.transpose", [x, [number(1), number(0)]], [x.T], dtype)
    device.forward("Functional.cumsum", [w, number(0)], [np.cumsum(w, 0)], dtype)
    device.forward("Mint.cumsum", [w, number(0)], [np.cumsum(w, 0)], dtype)
    shape = [number(64)]
    device.forward(
        "MintFunctional.layer_norm",
        [x, shape, one, zero, number(1e-5)],
        [normed(x, one, zero, 1e-5)],
        dtype,
    )
    counts = rng.randint(0, 1000, (8, 8)).astype(np.int32)
    device.forward("Functional.add", [counts, counts], [counts + counts], dtype)
    device.forward("Functional.argmax", [x, number(-1)], [x.argmax(-1).astype(np.int32)], dtype)
    device.data["Functional.argmax.0.forward"]["output"][0]["dtype"] = "Int32"
    return device
