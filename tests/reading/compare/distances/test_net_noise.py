# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The noise of a net: one sample of each tensor, and those around it."""

from __future__ import annotations

import pytest

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.net_noise import NetNoise
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import NET_FACTOR, Tolerances


def samples(*sizes, group=None, dtype="Float32"):
    return [(f"t{place}", group or place, dtype, size) for place, size in enumerate(sizes)]


def test_a_tensor_that_was_nearly_not_moved_has_the_noise_of_its_neighbours():
    found = NetNoise.of(samples(*[1e-5] * 5, 0.0, *[1e-5] * 5))
    assert found["t5"] == 1e-5


def test_a_tensor_has_the_noise_of_its_place_in_other_calls():
    found = NetNoise.of([*samples(2e-5, 0.0, 2e-5, group="softmax"), *samples(*[1e-7] * 40)][:3])
    assert found["t1"] == 2e-5


def test_a_large_sample_is_its_own():
    assert NetNoise.of(samples(1e-7, 1e-7, 0.3, 1e-7))["t2"] == 0.3


@pytest.mark.parametrize(
    ("dtype", "unit"), [("Float32", 2**-24), ("torch.float16", 2**-11), ("BFloat16", 2**-8)]
)
def test_the_least_noise_is_one_rounding(dtype, unit):
    assert set(NetNoise.of(samples(0.0, 0.0, dtype=dtype)).values()) == {unit}


def test_tensors_without_fractions_have_none():
    assert NetNoise.of(samples(0.0, 1.0, dtype="Int64")) == {}


def test_the_noise_takes_the_place_of_the_tolerance_of_the_dtype():
    tolerances = Tolerances(noise=NetNoise({"x": 1e-7}))
    tolerance = of_dtype("Float32")
    assert tolerances.agrees("x", Distance(NET_FACTOR * 1e-7, None), tolerance)
    assert not tolerances.agrees("x", Distance(1e-6, None), tolerance)
    assert tolerances.agrees(
        "y", Distance(1e-6, None), tolerance
    )  # it was not in the run that was moved
    assert tolerances.agrees("x", Distance(1e-3, None), of_dtype("Float16"), is_one_dtype=False)
