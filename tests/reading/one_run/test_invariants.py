# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe check of one run: outputs that no right kernel gives are named, and those on the right side are not."""

from __future__ import annotations

import numpy as np
import pytest

import probe
from tests.reading.builders import forward, record, tensor, value, write
from tests.support.chinese import english_left

RNG = np.random.RandomState(0)
X = RNG.randn(6, 7, 5).astype(np.float32)
FRAME = "File /me/net.py, line 7, in construct, \n y = softmax(x)"


def softmax(x, axis=-1):
    with np.errstate(invalid="ignore"):
        parts = np.exp(x - x.max(axis, keepdims=True))
        return parts / parts.sum(axis, keepdims=True)


def found(folder, entry, name="Functional.softmax.0.forward"):
    """Return the findings about one call."""
    write(folder / "step0" / "rank", {name: entry}, {name: [FRAME]})
    return [
        (item.weight, item.said.key)
        for item in probe.check(str(folder)).findings
        if item.rule == "invariant"
    ]


def shares(sum_=1.0, size=5, dtype="Float32", **more):
    """Return the record of a softmax of rows of a size that sum to a number on average."""
    numbers = {"Max": 0.9, "Min": 0.0, "mean": sum_ / size, "norm": 1.0, **more}
    return {**tensor(shape=[64, size], **numbers), "dtype": dtype}


LOGITS = tensor(shape=[64, 5], Max=3.0, Min=-3.0)
MASKED = tensor(shape=[64, 5], Max=3.0, Min=-np.inf, mean=-np.inf, norm=np.inf)
FAULT = [("fault", "health.not_one")]
MAYBE = [("suspicious", "health.maybe_masked")]


@pytest.mark.parametrize(
    ("given", "made", "said"),
    [
        (LOGITS, shares(), []),
        (LOGITS, shares(1.0009), []),
        (LOGITS, shares(1.0011), FAULT),
        (LOGITS, shares(0.9991), []),
        (LOGITS, shares(0.9989), FAULT),
        (
            LOGITS,
            shares(1.0089, dtype="Float16"),
            [],
        ),  # 9.1 roundings and 5 numbers that are too small
        (LOGITS, shares(1.0096, dtype="Float16"), FAULT),
        (LOGITS, shares(1.071, dtype="BFloat16"), []),
        (LOGITS, shares(1.073, dtype="BFloat16"), FAULT),
        (LOGITS, shares(0.0, 20_000, "Float16", Max=0.0), []),  # all shares may be too small
        (MASKED, shares(0.9), MAYBE),
        (MASKED, shares(1.1), FAULT),
        (MASKED, shares(mean=np.nan, Max=np.nan, Min=np.nan), []),  # a row that is -Inf is NaN
        (LOGITS, shares(mean=np.nan), []),
        (tensor(shape=[64, 5], Max=np.inf), shares(0.9), []),
        (LOGITS, shares(Max=1.0009), []),
        (LOGITS, shares(Max=1.0011), [("fault", "health.out_of_range")]),
        (LOGITS, shares(Min=-0.0009), []),
        (LOGITS, shares(Min=-0.0011), [("fault", "health.out_of_range")]),
    ],
)
def test_a_softmax_sums_to_1(tmp_path, given, made, said):
    assert found(tmp_path, forward([given], [made])) == said


AXES = {
    "Functional.softmax": ([value(1)], {}),
    "Tensor.softmax": ([value(-2)], {}),
    "MintFunctional.softmax": ([], {"dim": value(1)}),
    "Mint.softmax": ([value(1)], {}),
}


@pytest.mark.parametrize("key", AXES)
def test_the_axis_is_that_of_the_arguments(tmp_path, key):
    args, kwargs = AXES[key]
    for axis, said in ((1, []), (2, FAULT)):
        entry = {**forward([record(X), *args], [record(softmax(X, axis))]), "input_kwargs": kwargs}
        assert found(tmp_path / str(axis), entry, f"{key}.0.forward") == said


def test_the_axes_of_a_primitive_are_its_attributes(tmp_path):
    name = "Primitive.softmax.Softmax.0.forward"
    whole = np.exp(X) / np.exp(X).sum((1, 2), keepdims=True)
    for place, (axes, made) in enumerate(
        [([-1], softmax(X)), ([1, 2], whole), ([1], softmax(X, 1)), ([1], softmax(X))]
    ):
        entry = forward([record(X)], [record(made)])
        entry["attributes"] = {"axis": [value(axis) for axis in axes]}
        assert found(tmp_path / str(place), entry, name) == (FAULT if place == 3 else [])


def test_a_cell_of_unknown_axis_is_suspicious_if_no_axis_fits(tmp_path):
    name = "Cell.a.Softmax.forward.0"
    for axis in (0, 1, 2):
        entry = forward([record(X)], [record(softmax(X, axis))])
        assert found(tmp_path / str(axis), entry, name) == []
    entry = forward([record(X)], [record(softmax(X) * np.float32(1.1))])
    assert found(tmp_path / "wrong", entry, name) == [("suspicious", "health.not_one")]


def arrays(folder, given, made):
    """Write the arrays of a call, and return its entry."""
    place = folder / "step0" / "rank" / "dump_tensor_data"
    place.mkdir(parents=True)
    np.save(place / "x.npy", given)
    np.save(place / "y.npy", made)
    entry = forward([record(given)], [record(made)])
    entry["input_args"][0]["data_name"] = "x.npy"
    entry["output"][0]["data_name"] = "y.npy"
    return entry


def test_rows_that_are_masked_whole_may_be_zero_and_their_neighbours_not(tmp_path):
    given = X.copy()
    given[4] = -np.inf
    zeros = np.nan_to_num(softmax(given))
    assert found(tmp_path / "right", arrays(tmp_path / "right", given, zeros)) == []
    zeros[5] = 0
    assert found(tmp_path / "wrong", arrays(tmp_path / "wrong", given, zeros)) == [
        ("fault", "health.rows_not_one")
    ]
    check = probe.check(str(tmp_path / "wrong"))
    assert "7 of 42 rows of Functional.softmax.0.forward do not sum to 1, first [5, 0]" in str(
        check
    )
    assert "net.py:7" in str(check)
    assert not check.ok


RANGES = {
    "sigmoid": (0.0, 1.0),
    "tanh": (-1.0, 1.0),
    "relu6": (0.0, 6.0),
    "cos": (-1.0, 1.0),
}


@pytest.mark.parametrize("api", RANGES)
def test_a_function_stays_in_its_range(tmp_path, api):
    low, high = RANGES[api]
    name = f"Mint.{api}.0.forward"
    for place, (least, most, count) in enumerate(
        [
            (low, high, 0),
            (low - 0.0009, high + 0.0009, 0),
            (low - 0.0011, high, 1),
            (low, high + 0.0011, 1),
        ]
    ):
        made = tensor(Min=least, Max=most, mean=0.2)
        said = found(tmp_path / str(place), forward([LOGITS], [made]), name)
        assert said == [("fault", "health.out_of_range")] * count


def test_a_class_of_the_user_may_have_any_range(tmp_path):
    made = tensor(Min=-5.0, Max=5.0)
    name = "Cell.gate.Sigmoid.forward.0"
    assert found(tmp_path / "a", forward([LOGITS], [made]), name) == [
        ("suspicious", "health.out_of_range")
    ]
    assert found(tmp_path / "b", forward([LOGITS], [made]), "Own.sigmoid.0.forward") == []


@pytest.mark.parametrize("key", ["Functional.transpose", "Tensor.reshape", "Primitive.a.Flatten"])
def test_values_that_move_keep_their_ends(tmp_path, key):
    right = {**LOGITS, "shape": [5, 64]}
    name = f"{key}.0.forward"
    assert found(tmp_path / "a", forward([LOGITS], [right]), name) == []
    assert found(tmp_path / "b", forward([LOGITS], [{**right, "Max": 3.0000002}]), name) == [
        ("fault", "health.moved")
    ]
    other = {**right, "Max": 2.5, "shape": [5, 63]}  # fewer elements
    assert found(tmp_path / "c", forward([LOGITS], [other]), name) == []
    rounded = {**right, "Max": 3.1, "dtype": "BFloat16"}
    assert found(tmp_path / "d", forward([LOGITS], [rounded]), name) == []


def test_a_product_is_at_most_as_large_as_the_norms_of_its_factors(tmp_path):
    factors = [tensor(norm=4.0), tensor(norm=5.0)]
    for norm, said in ((20.9, []), (21.1, [("fault", "health.product")])):
        entry = forward(factors, [tensor(norm=norm)])
        assert found(tmp_path / str(norm), entry, "Mint.matmul.0.forward") == said


def test_the_answer_is_chinese_too(tmp_path):
    found(tmp_path, forward([LOGITS], [shares(0.9)]))
    (finding,) = probe.check(str(tmp_path)).findings
    assert english_left(finding.whole.text("zh")) == []
