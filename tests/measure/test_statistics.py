# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The four numbers: exact for integers, right for every finite float, numpy's for the rest."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from probe.measure.statistics import crc32, statistics

KEYS = {"Max", "Min", "Mean", "Norm"}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (33, 65), (300, 500)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_floats_agree_with_double_precision(dtype, shape, scale):
    array = np.asarray(np.asarray(np.random.RandomState(1).randn(*shape)) * scale).astype(dtype)
    wide = array.astype(np.float64)
    found = statistics(array)
    assert found.keys() == KEYS
    assert (found["Max"], found["Min"]) == (wide.max(), wide.min())
    assert found["Norm"] == pytest.approx(math.sqrt((wide**2).sum()), rel=1e-6)
    assert found["Mean"] == pytest.approx(wide.mean(), abs=1e-6 * abs(wide).max())


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint16, np.uint64])
def test_integers_are_exact(dtype):
    info = np.iinfo(dtype)
    array = np.array([info.min, info.max, 3], dtype)
    found = statistics(array)
    assert (found["Max"], found["Min"]) == (info.max, info.min)
    assert type(found["Max"]) is int
    assert found["Norm"] == pytest.approx(math.sqrt(sum(float(v) ** 2 for v in array.tolist())))


def test_integers_beyond_two_to_the_53_keep_their_last_digit():
    assert statistics(np.array([2**53 + 1], np.int64))["Max"] == 2**53 + 1


def test_statistics_of_bool_complex_and_empty_tensors():
    assert statistics(np.array([True, False])) == {"Max": True, "Min": False, "Mean": None, "Norm": None}
    found = statistics(np.array([3 + 4j, 0], np.complex64))
    assert found == {"Max": 5.0, "Min": 0.0, "Mean": 2.5, "Norm": 5.0}
    assert statistics(np.array(3 + 4j))["Norm"] == 5.0
    for dtype in (np.float32, np.int32, bool):
        assert statistics(np.zeros((0, 3), dtype)) == dict.fromkeys(("Max", "Min", "Mean", "Norm"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_finite_data_never_give_an_infinite_statistic(dtype):
    array = np.full(8, 1e38, dtype)
    if dtype is np.float64:
        array = np.full(8, 1e308)
    found = statistics(array)
    value = float(array[0])
    assert found["Mean"] == pytest.approx(value, rel=1e-6)
    assert math.isfinite(found["Norm"])
    if dtype is not np.float64:
        assert found["Norm"] == pytest.approx(value * math.sqrt(8), rel=1e-6)


def test_the_norm_of_tiny_numbers_does_not_underflow():
    assert statistics(np.full(4, 1e-30, np.float32))["Norm"] == pytest.approx(2e-30, rel=1e-6)
    assert statistics(np.zeros(4, np.float32)) == {"Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_nan_and_inf_propagate_and_are_counted(dtype):
    found = statistics(np.array([1.0, np.nan, np.inf, -np.inf], dtype))
    assert all(math.isnan(found[key]) for key in KEYS)
    assert (found["nan_count"], found["inf_count"]) == (1, 2)
    found = statistics(np.array([1.0, np.inf], dtype))
    assert (found["Max"], found["Min"], found["Mean"], found["Norm"]) == (math.inf, 1.0, math.inf, math.inf)
    assert found["inf_count"] == 1 and "nan_count" not in found


def test_norm_of_a_scalar_is_its_absolute_value():
    assert statistics(np.array(-2.5, np.float32)) == {"Max": -2.5, "Min": -2.5, "Mean": -2.5, "Norm": 2.5}


@pytest.mark.parametrize("order", ["transposed", "strided", "reversed"])
def test_the_memory_layout_does_not_change_the_statistics(order):
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = {"transposed": array.T, "strided": array[::2, ::3], "reversed": array[::-1]}[order]
    assert statistics(view) == statistics(np.ascontiguousarray(view))
    assert crc32(view) == crc32(np.array(view, order="C"))
