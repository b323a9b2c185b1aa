# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The distance of two tensors that their statistics leave, and where they tell nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from probe.reading.compare.distances.distance import distance
from tests.reading.builders import record, tensor


@pytest.mark.parametrize(("norm", "least"), [(3.0, 0.0), (math.inf, 0.0)])
def test_an_infinite_norm_of_finite_data_is_unknown(norm, least):
    """A device adds in float32: beyond 1e19 the sum of squares leaves its range."""
    device = {
        "dtype": "Float32",
        "shape": [4],
        "Max": 1e25,
        "Min": 0.0,
        "Mean": 5e24,
        "Norm": math.inf,
    }
    assert distance(device, {**device, "Norm": norm}).rel_l2 == least
    assert distance({**device, "Norm": norm}, device).rel_l2 == least
    assert distance(device, {**device, "Max": 2e25}).rel_l2 == 0.5
    assert distance(device, {**device, "Max": math.inf}).rel_l2 == math.inf


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_never_above_the_distance(seed):
    rng = np.random.RandomState(seed)
    a = (
        rng.randn(*rng.randint(1, 9, rng.randint(1, 4))) * 10.0 ** rng.randint(-6, 6)
        + rng.choice([0, 0, 100])
    ).astype("f")
    b = (
        a + a * 10.0 ** rng.randint(-7, 1) * rng.randn(*a.shape) if seed % 3 else rng.permutation(a)
    ).astype("f")
    true = np.linalg.norm(a.astype("d") - b.astype("d")) / max(
        np.linalg.norm(a.astype("d")), np.linalg.norm(b.astype("d"))
    )
    assert distance(record(a), record(b)).rel_l2 <= true * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        ({}, {"Mean": 0.6}, 0.1),
        ({}, {"Norm": 4.0}, 0.5),
        ({}, {"Max": math.nan, "Min": math.nan, "Mean": math.nan, "Norm": math.nan}, math.inf),
        (
            {"Max": math.inf, "Norm": math.inf, "Mean": math.inf},
            {"Max": math.inf, "Norm": math.inf, "Mean": math.inf},
            0.0,
        ),
        (
            {"Min": -math.inf, "Norm": math.inf, "Mean": -math.inf, "Max": 1.0},
            {"Min": -math.inf, "Norm": math.inf, "Mean": -math.inf, "Max": 3.0},
            0.6,
        ),
        (
            {"dtype": "Bool", "Max": True, "Min": False, "Mean": None, "Norm": None},
            {"dtype": "Bool", "Max": True, "Min": True, "Mean": None, "Norm": None},
            1.0,
        ),
    ],
)
def test_distances_of_statistics(a, b, least):
    assert distance({**tensor(), **a}, {**tensor(), **b}).rel_l2 >= least


@pytest.mark.parametrize(
    "wrong",
    [
        {"Max": "a"},
        {"Norm": []},
        {"Mean": {}},
        {"shape": None},
        {"shape": ["a"]},
        {"Norm": None},
        {"Max": 10**400},
    ],
)
def test_records_of_wrong_types_have_some_distance_or_none(wrong):
    for a, b in ((tensor(), {**tensor(), **wrong}), ({**tensor(), **wrong}, tensor())):
        found = distance(a, b).rel_l2
        assert found is None or found >= 0


@pytest.mark.parametrize("key", ["Mean", "Norm"])
def test_an_infinite_number_of_finite_data_tells_nothing_of_it(key):
    """A device adds in float32. The ends still tell the distance."""
    one = tensor(**{key: math.inf})
    assert distance(one, tensor()).rel_l2 == distance(tensor(), one).rel_l2 == 0.0
    assert distance(one, tensor(Max=4.0)).rel_l2 == pytest.approx(0.5)


@pytest.mark.parametrize("end", [math.inf, -math.inf, math.nan])
def test_nan_and_inf_on_one_side_alone_are_apart(end):
    assert distance(tensor(Max=end, Norm=math.inf), tensor()).rel_l2 == math.inf


def test_all_zeros_and_nothing_known():
    zeros = tensor(Max=0.0, Min=0.0, Mean=0.0, Norm=0.0)
    assert distance(zeros, zeros).rel_l2 == 0.0
    assert distance({"shape": [2]}, {"shape": [2]}).rel_l2 is None


SIZES = st.lists(st.floats(-1e3, 1e3, width=32), min_size=4, max_size=4)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(SIZES, SIZES)
def test_a_distance_is_the_same_from_both_sides(a, b):
    one, two = (record(np.array(values, np.float32)) for values in (a, b))
    assert distance(one, two).rel_l2 == pytest.approx(distance(two, one).rel_l2)
