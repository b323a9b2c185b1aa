# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""summary_mode as a list: each statistic is a key of the record, on the host and by MindSpore's operations."""

from __future__ import annotations

import zlib

import mindspore as ms
import numpy as np
import pytest

from probe import SettingsError
from probe.config.validators import STATISTICS
from tests.support import nets
from tests.support.tensors import tensor

VALUES = np.array([[1.0, -2.0, 0.0], [np.nan, np.inf, -np.inf], [np.inf, 0.0, -0.0]], np.float32)
EXPECTED = {
    "count": 9,
    "nan_count": 1,
    "negative_inf_count": 1,
    "positive_inf_count": 2,
    "negative_zero_count": 2,
    "zero_count": 3,
    "positive_zero_count": 3,
}


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("dtype", [ms.float32, ms.float16, ms.bfloat16])
def test_every_count_is_recorded_under_its_key(debug, measure, dtype):
    x = tensor(VALUES).astype(dtype)
    names = [name for name in STATISTICS if name.endswith("count")]
    _, dump = debug.record(lambda: x.reshape(9), summary_mode=names, measure=measure)
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    assert {
        key: value for key, value in record.items() if key not in ("type", "dtype", "shape")
    } == EXPECTED


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_list_may_name_statistics_and_counts(debug, measure):
    _, dump = debug.record(
        lambda: tensor([[3, -4, 0]], np.int32).reshape(3),
        summary_mode=["avg", "max", "zero count"],
        measure=measure,
    )
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    assert list(record)[3:] == ["Max", "Mean", "zero_count"]
    assert (record["Max"], record["zero_count"]) == (3, 1)
    assert record["Mean"] == pytest.approx(-1 / 3, rel=1e-5)


def test_a_list_may_name_a_statistic_and_md5(debug):
    array = np.arange(6, dtype=np.float32)
    _, dump = debug.record(lambda: tensor(array).reshape(2, 3), summary_mode=["min", "md5"])
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    assert (list(record)[3:], record["md5"]) == (
        ["Min", "md5"],
        f"{zlib.crc32(array.tobytes()):08x}",
    )


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_training_is_recorded_with_the_chosen_statistics(debug, measure):
    net, train = nets.build("digits")
    _, dump = debug.record(
        lambda: train(0), net, level="mix", summary_mode=["l2norm", "nan count"], measure=measure
    )
    record = dump.data["Cell.conv.Conv2d.forward.0"]["parameters"]["weight"]
    assert list(record)[3:] == ["Norm", "nan_count"]
    backward = dump.data["Cell.conv.Conv2d.backward.0"]["input"][0]
    assert (backward["nan_count"], backward["Norm"] > 0) == (0, True)


def test_a_wrong_statistic_is_named(debug):
    with pytest.raises(SettingsError, match=r"summary_mode: 'nan_count'.*Did you mean 'nan count'"):
        debug(summary_mode=["nan_count"])
    with pytest.raises(SettingsError, match="summary_mode"):
        debug(summary_mode=[])
