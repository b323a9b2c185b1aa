# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics of range: numbers of a table that Python makes of fractions and casts of numpy, on host and device."""

from __future__ import annotations

import math

import mindspore as ms
import ml_dtypes
import numpy as np
import pytest
from mindspore import Tensor, ops

from probe import SettingsError
from probe.config.validators import RANGES as NAMES, STATISTICS as ORDINARY
from probe.measure.statistics import STATISTICS

pytestmark = pytest.mark.slow

RANGES = {name: STATISTICS[name] for name in NAMES}

RNG = np.random.RandomState(3)
#: numbers beside each threshold: half of the smallest, the greatest, and where they become Inf
EDGES = [
    2.0**-25,
    2.0**-24,
    2.0**-10,
    1.01 * 2.0**-10,
    2.0**-9,
    2.0**-17,
    1.01 * 2.0**-17,
    448.0,
    464.0,
    464.5,
    480.0,
    57344.0,
    61439.0,
    61440.0,
    65504.0,
    65519.0,
    65520.0,
    1e30,
    3.4e38,
    0.0,
    0.0,
    1.0,
    -1.0,
]
VALUES = {
    "edges": (np.array(EDGES, np.float32), ms.float32),
    "wide": (
        np.exp(RNG.randn(60, 50) * 6).astype(np.float32) * RNG.choice([-1, 1], (60, 50)),
        ms.float32,
    ),
    "small": (RNG.randn(2000).astype(np.float32) * 1e-6, ms.float32),
    "zeros": (np.zeros(700, np.float32), ms.float32),
    "nonfinite": (
        np.resize(np.array([np.nan, np.inf, -np.inf, 1e-9, 3.0, 0.0], np.float32), 1200),
        ms.float32,
    ),
    "float16": (
        np.resize(np.array([65504.0, -65504.0, 6e-8, 0.5, 1.5], np.float32), 2000),
        ms.float16,
    ),
    "bfloat16": (
        np.resize(np.array([1e30, -3.0, 2.0**-120, 0.5, 0.0], np.float32), 2000),
        ms.bfloat16,
    ),
    "double": (np.resize(np.array([1e300, 1e-300, 0.5]), 300), ms.float64),
    "complex": (np.resize(np.array([3 + 4j, 0j, 1e-9j], np.complex64), 300), ms.complex64),
    "int8": (np.resize(np.array([-128, 127, 5, 0], np.int8), 2000), ms.int8),
    "uint8": (np.resize(np.array([255, 0, 5], np.uint8), 2001), ms.uint8),
    "int64": (np.resize(np.array([70000, -3, 0]), 300), ms.int64),
    "bool": (np.resize(np.array([True, False]), 2000), ms.bool_),
    "e4m3fn": (
        np.resize(np.array([448.0, -448.0, 2.0**-9, 0.0], np.float32), 4000),
        "float8_e4m3fn",
    ),
    "e5m2": (np.resize(np.array([57344.0, 2.0**-16, 3.0], np.float32), 3000), "float8_e5m2"),
    "hifloat8": (np.resize(np.array([32768.0, 2.0**-22, 3.0], np.float32), 3000), "hifloat8"),
    "one": (np.array(3e-5, np.float32), ms.float32),
    "empty": (np.zeros((0, 2), np.float32), ms.float32),
}
GREATEST = {
    "float16": (65504.0,),
    "bfloat16": (3.3895313892515355e38,),
    "int8": (127, -128),
    "uint8": (255,),
    "int64": (2**63 - 1, -(2**63)),
    "bool": (),
    "e4m3fn": (448.0,),
    "e5m2": (57344.0,),
    "hifloat8": (32768.0,),
    "double": (1.7976931348623157e308,),
    "complex": (),
}
SINGLE = (3.4028234663852886e38,)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values in another dtype by numpy's own cast."""
    with np.errstate(all="ignore"):
        return values.astype(getattr(ml_dtypes, dtype, None) or np.dtype(dtype)).astype(np.float64)


def table(name: str) -> dict:
    """Return the statistics of range of a tensor."""
    array = VALUES[name][0]
    if not array.size:
        return {entry.key: None for entry in RANGES.values()}
    if name in ("float16", "bfloat16"):
        array = array.astype(np.float16 if name == "float16" else ml_dtypes.bfloat16)
    real = np.abs(array) if name == "complex" else array.astype(np.float64)
    sizes = [abs(float(value)) for value in real.reshape(-1)]
    finite = np.array([size for size in sizes if math.isfinite(size)])
    above = [size for size in finite if size]
    ends = GREATEST.get(name, SINGLE)
    at_ends = sum(
        sizes.count(end) if len(ends) == 1 else list(real.reshape(-1)).count(end) for end in ends
    )
    found = {
        "smallest_magnitude": min(above, default=None),
        "exponent_range": math.log2(max(above)) - math.log2(min(above)) if above else None,
        "zero_share": sizes.count(0.0) / len(sizes),
        "saturated_share": at_ends / len(sizes) if ends else None,
    }
    for dtype in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        there = rounded(finite, dtype)
        stays = np.isfinite(there)
        kept, change = finite[stays], there[stays] - finite[stays]
        scale = kept.max(initial=0.0) or 1.0
        norm = math.sqrt(sum((value / scale) ** 2 for value in kept))
        found[f"underflow:{dtype}"] = int(((there == 0) & (finite != 0)).sum()) / len(sizes)
        found[f"overflow:{dtype}"] = int((~stays).sum()) / len(sizes)
        error = math.sqrt(sum((value / scale) ** 2 for value in change))
        found[f"rounding_error:{dtype}"] = error / norm if norm else 0.0
    return found


@pytest.mark.parametrize("measure", ["host", "device"])
@pytest.mark.parametrize("name", VALUES)
def test_statistics_of_range_are_those_of_a_table(debug, name, measure):
    array, dtype = VALUES[name]
    dtype = getattr(ms, dtype, None) if isinstance(dtype, str) else dtype
    if dtype is None:
        pytest.skip(f"this MindSpore has no {VALUES[name][1]}")
    x = Tensor(array, dtype)
    _, dump = debug.record(lambda: ops.reshape(x, (-1,)), summary_mode=list(NAMES), measure=measure)
    record = dump.data["Functional.reshape.0.forward"]["input_args"][0]
    expected = table(name)
    assert list(record)[3:] == [entry.key for entry in RANGES.values()] == list({**expected})
    wrong = {}
    for key, number in expected.items():
        near = number if number is None else pytest.approx(number, rel=1e-5, abs=1e-30)
        wrong.update({} if record[key] == near else {key: (record[key], number)})
    assert wrong == {}


def test_the_settings_name_all_statistics_of_range():
    assert set(NAMES) | {*ORDINARY, "md5"} == {*STATISTICS, "md5"}


def test_a_training_is_recorded_with_the_four_and_statistics_of_range(debug):
    names = ["max", "min", "underflow:float16", "overflow:float16"]
    x = Tensor(np.array([1e-9, 1e6, 1.0, 0.0], np.float32))
    _, dump = debug.record(lambda: ops.reshape(x, (2, 2)), summary_mode=names)
    record = dump.data["Functional.reshape.0.forward"]["input_args"][0]
    assert list(record)[3:] == ["Max", "Min", "underflow:float16", "overflow:float16"]
    assert (record["underflow:float16"], record["overflow:float16"]) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("underflow:float32", "underflow:float16"), ("smallest_magnitude", "smallest magnitude")],
)
def test_a_wrong_name_is_refused_with_the_nearest_one(debug, given, nearest):
    with pytest.raises(SettingsError, match=f"Did you mean '{nearest}'"):
        debug(summary_mode=[given])


def test_level_l2_has_no_statistics_of_range(debug):
    with pytest.raises(SettingsError, match="no statistics of range at level L2"):
        debug(level="L2", summary_mode=["zero share"])
