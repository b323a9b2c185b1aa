# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which arrays are written, and how much of them."""

from __future__ import annotations

import numpy as np
import pytest
from mindspore import ops

from probe import SettingsError
from tests.support import nets
from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def _files(dump):
    return sorted(path.name for path in (dump.folder / "dump_tensor_data").glob("*.npy"))


@pytest.mark.parametrize(
    ("when", "written"),
    [
        ("nonfinite", ["Functional.exp.0.forward.output.0.npy"]),
        (
            {"stat": "max", ">": 5},
            ["Functional.exp.0.forward.input.0.npy", "Functional.exp.0.forward.output.0.npy"],
        ),
        (
            {"stat": "mean", "<": 0.5},
            ["Functional.tanh.0.forward.input.0.npy", "Functional.tanh.0.forward.output.0.npy"],
        ),
        (
            {"stat": "zero count", ">=": 2},
            ["Functional.tanh.0.forward.input.0.npy", "Functional.tanh.0.forward.output.0.npy"],
        ),
        (
            {"stat": "count", "==": 2},
            [
                f"Functional.{name}.0.forward.{kind}.0.npy"
                for name in ("exp", "tanh")
                for kind in ("input", "output")
            ],
        ),
    ],
)
def test_only_arrays_that_meet_the_condition_are_written(debug, when, written):
    _, dump = debug.record(
        lambda: (ops.exp(tensor([1000.0, 1.0])), ops.tanh(tensor([0.0, 0.0]))),
        task="tensor",
        when=when,
    )
    assert _files(dump) == written
    for entry in dump.data.values():
        for record in entry["input_args"] + entry["output"]:
            assert "Max" in record
            assert ("data_name" in record) == (record.get("data_name") in written)


def test_a_condition_applies_to_the_calls_of_tensor_list(debug):
    net, train = nets.build("digits")
    _, dump = debug.record(
        lambda: train(0),
        net,
        level="mix",
        tensor_list=["Cell.conv"],
        when={"stat": "l2norm", ">": 1.0},
    )
    written = [
        record
        for entry in dump.data.values()
        for record in _records(entry)
        if "data_name" in record
    ]
    assert written
    assert all(record["Norm"] > 1.0 for record in written)
    others = [
        record
        for name in dump.names("Cell.conv")
        for record in _records(dump.data[name])
        if "data_name" not in record
    ]
    assert others
    assert all(record["Norm"] <= 1.0 for record in others)


def _records(value):
    if isinstance(value, dict) and value.get("type") == "mindspore.Tensor":
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [record for item in items for record in _records(item)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"slice": [{"dim": 0, "begin": 1, "end": 3}]}, X[1:3]),
        ({"slice": [{"dim": 0, "end": 2}, {"dim": 1, "begin": -2}]}, X[:2, -2:]),
        ({"slice": [{"dim": 1, "size": 6, "end": 1}]}, X[:, :1]),
        ({"slice": [{"dim": 1, "size": 5, "end": 1}, {"dim": 7, "end": 1}]}, X),
        ({"sample_mode": 1, "sample_num": 4}, X.reshape(-1)[[0, 8, 15, 23]]),
        ({"sample_mode": 1, "sample_num": 24}, X),
        ({"sample_mode": 0, "sample_num": 4}, X),
        ({"sample_mode": 1, "sample_num": 2, "slice": [{"dim": 0, "begin": 3}]}, X[3][[0, 5]]),
    ],
)
def test_a_part_of_an_array_is_written_and_statistics_are_of_the_whole(debug, settings, expected):
    _, dump = debug.record(lambda: tensor(X).reshape(24), task="tensor", **settings)
    record = dump.data["Tensor.reshape.0.forward"]["input_args"][0]
    assert (record["shape"], record["Max"]) == ([4, 6], 23.0)
    np.testing.assert_array_equal(dump.array(record["data_name"]), expected)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("when", "infinite"),
        ("when", {"stat": "maximum", ">": 1}),
        ("when", {"stat": "max"}),
        ("when", {"stat": "max", "=>": 1}),
        ("when", {"stat": "max", ">": "1"}),
        ("slice", [{"begin": 1}]),
        ("slice", [{"dim": -1}]),
        ("slice", [{"dim": 0, "ende": 1}]),
        ("slice", [{"dim": 0, "end": 1.5}]),
        ("slice", "0:4"),
        ("sample_mode", 2),
        ("sample_num", -1),
    ],
)
def test_wrong_settings_are_named(debug, key, wrong):
    with pytest.raises(SettingsError, match=rf"tensor\.{key}.* is not allowed. Allowed: "):
        debug(task="tensor", **{key: wrong})
