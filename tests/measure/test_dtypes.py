# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tensors of every dtype, as they come out of MindSpore, in the dump."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

DTYPES = {
    "bool_": "Bool",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float16": "Float16",
    "float32": "Float32",
    "float64": "Float64",
    "bfloat16": "BFloat16",
    "complex64": "Complex64",
    "complex128": "Complex128",
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("values", [[1, 0, 3], 1, []], ids=["vector", "scalar", "empty"])
def test_every_dtype_is_recorded_and_stored(debug, monkeypatch, dtype, values):
    tensor = Tensor(np.array(values, np.float32)).astype(getattr(ms, dtype))
    monkeypatch.setattr(ops, "relu", lambda x: x)
    _, dump = debug.record(lambda: ops.relu(tensor), task="tensor", summary_mode="md5")
    record = dump.data["Functional.relu.0.forward"]["output"][0]
    assert record["dtype"] == DTYPES[dtype]
    assert record["shape"] == list(np.shape(values))
    if values != []:
        assert (
            record["Max"] == (max(values) if isinstance(values, list) else values)
            if dtype != "bool_"
            else True
        )
    else:
        assert [record[key] for key in ("Max", "Min", "Mean", "Norm")] == [None] * 4
    stored = dump.array(record["data_name"])
    assert stored.shape == np.shape(values)
    assert stored.dtype == (np.float32 if dtype == "bfloat16" else np.dtype(dtype.rstrip("_")))
    assert (
        stored.astype(complex).tolist()
        == np.array(values, bool if dtype == "bool_" else complex).astype(complex).tolist()
    )
