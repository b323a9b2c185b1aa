# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe.load: arrays come back in the dtype that their tensors had."""

from __future__ import annotations

import mindspore as ms
import ml_dtypes
import numpy as np
import pytest

import probe
from probe import UsageError
from tests.support.tensors import tensor

#: every bit pattern that a bfloat16 can have
PATTERNS = np.arange(2**16, dtype=np.uint16)


def _every_pattern():
    wide = (PATTERNS.astype(np.uint32) << 16).view(np.float32)
    return ms.Tensor(wide).astype(ms.bfloat16)


@pytest.mark.parametrize("exact", [True, False])
def test_every_bfloat16_survives(debug, exact):
    x = _every_pattern()
    bits = x.astype(ms.float32).asnumpy().view(np.uint32) >> 16
    _, dump = debug.record(lambda: x.reshape(256, 256), task="tensor", exact_dtypes=exact)
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    path = dump.folder / "dump_tensor_data" / record["data_name"]
    array = probe.load(path)
    assert array.dtype == ml_dtypes.bfloat16
    assert array.shape == (65536,)
    read = array.view(np.uint16)
    number = (PATTERNS & 0x7FFF) <= 0x7F80
    np.testing.assert_array_equal(read[number], PATTERNS[number])
    if exact:
        np.testing.assert_array_equal(read, bits)  # not a number too, as MindSpore has it
        assert path.stat().st_size < 2**17 + 200
    else:
        assert np.isnan(array[~number].astype(np.float32)).all()
        assert np.load(path).dtype == np.float32


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_, np.complex64]
)
def test_other_dtypes_come_back_as_they_were(debug, dtype):
    values = np.array([[0, 1], [1, 0]], dtype)
    _, dump = debug.record(
        lambda: tensor(values, dtype).reshape(4), task="tensor", exact_dtypes=True
    )
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    array = probe.load(str(dump.folder / "dump_tensor_data" / record["data_name"]))
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, values)


def test_a_file_that_is_not_an_array_is_refused_by_name(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"nothing")
    for name in ("x.npy", "y.npy"):
        with pytest.raises(UsageError, match=name):
            probe.load(tmp_path / name)


def test_a_pickle_is_never_opened(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(UsageError, match="Python objects, which are never read"):
        probe.load(tmp_path / "x.npy")
