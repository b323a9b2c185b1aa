# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The four numbers: exact for integers, right for every finite float, numpy's for the rest."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import zlib

import ml_dtypes
import numpy as np
import pytest

from probe.measure.statistics import crc32, statistics
from tests.support import arrays, processes

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


def _check(array):
    errors = arrays.errors(array)
    exact = 0.0 if array.dtype.kind != "c" else 3e-16  # |x| of a complex number is itself rounded
    assert errors["Max"] <= exact and errors["Min"] <= exact
    assert errors["Mean"] <= 2e-7
    assert errors["Norm"] <= 2e-7


@pytest.mark.slow
@pytest.mark.parametrize("kind", arrays.KINDS)
@pytest.mark.parametrize("dtype", arrays.DTYPES)
def test_mean_and_norm_are_within_2e_7_of_double_precision(dtype, kind):
    for size in arrays.SIZES + arrays.LARGE_SIZES:
        _check(arrays.make(kind, arrays.DTYPES[dtype], size))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_bound_holds_for_16_million_elements(dtype):
    _check(np.full(16_000_001, 0.7, dtype))


def test_the_bound_holds_for_many_constants():
    constants = np.random.default_rng(2).uniform(0.5, 1, 500).astype(np.float32)
    for constant in constants:
        _check(np.full(16384, constant))


def test_the_bound_holds_for_equal_rows():
    rng = np.random.default_rng(3)
    for length in (2, 3, 16, 48, 64, 128, 1000):
        for _ in range(20):
            _check(np.tile(rng.uniform(0.5, 1, length).astype(np.float32), 70000 // length))


def test_the_place_in_memory_does_not_matter():
    array = arrays.make("random", np.float32, 70001)
    expected = statistics(array)
    for offset in range(1, 17):
        room = np.empty(4 * 70001 + 80, np.uint8)
        moved = room[4 * offset : 4 * offset + 4 * 70001].view(np.float32)
        moved[:] = array
        assert statistics(moved) == expected
    unaligned = np.empty(4 * 70001 + 1, np.uint8)[1:].view(np.float32)
    unaligned[:] = array
    assert statistics(unaligned) == expected
    spaced = np.zeros((70001, 3), np.float32)
    spaced[:, 1] = array
    assert statistics(spaced[:, 1]) == expected
    array.flags.writeable = False
    assert statistics(array) == expected
    assert statistics(array.astype(">f4")) == pytest.approx(expected, rel=2e-7)


@pytest.mark.parametrize("dtype", [*arrays.DTYPES.values(), np.float64, np.longdouble])
@pytest.mark.parametrize("size", [3, 48, 49, 7000, 300001])
def test_no_setting_of_numpy_makes_measuring_warn_or_raise(dtype, size):
    kinds = ["random", "mostly zeros", "tiny", "subnormal", "large"]
    if dtype is np.longdouble:
        kinds = kinds[:2]
    with np.errstate(all="raise"):
        for kind in kinds:
            with np.errstate(all="ignore"):
                array = arrays.make(kind, dtype, size)
            assert math.isfinite(statistics(array)["Norm"])
            array[1] = np.nan
            assert math.isnan(statistics(array)["Norm"])
            array[0], array[1] = np.inf, -np.inf
            statistics(array)


def test_zero_has_one_sign():
    """The largest of 0.0 and -0.0 would depend on the processor."""
    for size in (2, 1000, 10000, 300000):
        array = np.zeros(size, np.float32)
        array[::2] = -0.0
        found = statistics(array)
        assert [math.copysign(1, found[key]) for key in ("Max", "Min")] == [1, 1]


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
    assert statistics(np.array([True, False])) == {
        "Max": True,
        "Min": False,
        "Mean": None,
        "Norm": None,
    }
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
    assert (found["Max"], found["Min"], found["Mean"], found["Norm"]) == (
        math.inf,
        1.0,
        math.inf,
        math.inf,
    )
    assert found["inf_count"] == 1 and "nan_count" not in found


def test_norm_of_a_scalar_is_its_absolute_value():
    assert statistics(np.array(-2.5, np.float32)) == {
        "Max": -2.5,
        "Min": -2.5,
        "Mean": -2.5,
        "Norm": 2.5,
    }


@pytest.mark.parametrize("order", ["transposed", "strided", "reversed"])
def test_the_memory_layout_does_not_change_the_statistics(order):
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = {"transposed": array.T, "strided": array[::2, ::3], "reversed": array[::-1]}[order]
    assert statistics(view) == statistics(np.ascontiguousarray(view))
    assert crc32(view) == crc32(np.array(view, order="C"))


WITHOUT = "import sys; sys.modules['isal'] = sys.modules['numkong'] = None; "
CHECKSUMS = (
    "import numpy as np; from probe.measure.statistics import crc32; "
    "print([crc32(np.arange(size, dtype=np.uint8)) for size in (0, 1, 7, 4096, 300000)])"
)


@pytest.mark.medium
@pytest.mark.parametrize("code", [CHECKSUMS, WITHOUT + CHECKSUMS], ids=["fast", "zlib"])
def test_checksums_are_those_of_zlib_with_and_without_the_extra(code):
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    sizes = (0, 1, 7, 4096, 300000)
    expected = [f"{zlib.crc32(np.arange(size, dtype=np.uint8).tobytes()):08x}" for size in sizes]
    assert done.stdout == f"{expected}\n"


BOUNDS = """
import json, math
import numpy as np
from probe.measure import statistics as measured

rng, worst = np.random.RandomState(5), 0.0
for size in (1, 7, 48, 49, 512, 6144, 6145, 100_001, 300_000):
    for kind in (np.float32, np.float64, np.float16):
        for made in (rng.randn(size), rng.randn(size) + 5, np.abs(rng.randn(size)) * 1e-3, np.linspace(-3, 3, size)):
            array = made.astype(kind)
            found, exact = measured.statistics(array), array.astype(np.float64)
            assert (found["Max"], found["Min"]) == (exact.max(), exact.min()), (size, kind)
            norm, most = math.sqrt(math.fsum((exact * exact).tolist())), abs(exact).max()
            mean = math.fsum(exact.tolist()) / size
            worst = max(worst, abs(found["Norm"] - norm) / norm, abs(found["Mean"] - mean) / most)
print(json.dumps({"fast": measured._moments is not None, "worst": worst}))
"""


@pytest.mark.medium
@pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "numpy"])
def test_statistics_keep_their_bound_with_and_without_the_extra(is_fast):
    if is_fast and importlib.util.find_spec("numkong") is None:
        pytest.skip("the extra fast has no numkong for this Python: it begins with 3.10")
    code = BOUNDS if is_fast else WITHOUT + BOUNDS
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["fast"] is is_fast
    assert found["worst"] < (1e-12 if is_fast else 2e-7)
