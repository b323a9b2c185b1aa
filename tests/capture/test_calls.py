# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which calls become entries, under which names, and with what values in them."""

from __future__ import annotations

import collections
import dataclasses
import re

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops

from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = tensor([[1.0, -2.0], [3.0, 4.0]])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("Tensor.__add__", lambda: X + 1),
        ("Tensor.__radd__", lambda: 1 + X),
        ("Tensor.__getitem__", lambda: X[1:]),
        ("Tensor.__floordiv__", lambda: X // 2),
        ("Tensor.__invert__", lambda: ~tensor([True], bool)),
        ("Tensor.mul", lambda: X.mul(2.0)),
        ("Tensor.to", lambda: X.astype(ms.float16)),
        ("Tensor.expand", lambda: X.expand((2, 2))),
        ("Functional.relu", lambda: ops.relu(X)),
        ("Functional.concat", lambda: ops.concat((X, X))),
        ("Mint.add", lambda: mint.add(X, X)),
        ("Mint.matmul", lambda: mint.matmul(X, X)),
        ("MintFunctional.relu", lambda: mint.nn.functional.relu(X)),
    ],
)
def test_a_call_is_recorded_under_the_name_it_was_called_by_and_the_calls_inside_it_are_not(
    debug, name, call
):
    expected = call().asnumpy()
    result, dump = debug.record(call)
    np.testing.assert_array_equal(result.asnumpy(), expected)
    assert list(dump.data) == [f"{name}.0.forward"]


def test_an_input_is_recorded_as_it_was_at_the_time_of_the_call(debug):
    x = tensor([1.0, 2.0])

    def work():
        y = ops.exp(x)
        x[0] = 5.0
        return y

    _, dump = debug.record(work)
    assert dump.data["Functional.exp.0.forward"]["input_args"][0]["Max"] == 2.0


def test_a_call_that_raises_has_an_entry_with_its_error_and_the_next_call_is_recorded(debug):
    def work():
        with pytest.raises(ValueError, match=r"axis|dim|rank"):
            ops.concat((X, X), axis=7)
        return ops.exp(X)

    _, dump = debug.record(work)
    entry = dump.data["Functional.concat.0.forward"]
    assert entry["raised"].startswith("ValueError: ") and "output" not in entry
    assert entry["input_args"][0][0]["shape"] == [2, 2]
    assert "Functional.exp.0.forward" in dump.data


def test_arguments_of_every_kind_are_recorded(debug, monkeypatch):
    @dataclasses.dataclass
    class Options:
        scale: float
        where: Tensor

    Pair = collections.namedtuple("Pair", "left right")
    cycle = [1]
    cycle.append(cycle)
    deep = []
    for _ in range(1000):
        deep = [deep]
    values = {
        "none": (None, None),
        "flag": (True, {"type": "bool", "value": True}),
        "number": (3, {"type": "int", "value": 3}),
        "real": (0.5, {"type": "float", "value": 0.5}),
        "text": ("mean", {"type": "str", "value": "mean"}),
        "formula": ("-inf", {"type": "str", "value": "_-inf"}),
        "dtype": (ms.float16, {"type": "mindspore.dtype", "value": "Float16"}),
        "slice": (slice(1, None, 2), {"type": "slice", "value": [1, None, 2]}),
        "dots": (..., {"type": "ellipsis", "value": "..."}),
        "scalar": (np.float32(2.0), {"type": "float32", "value": 2.0}),
        "list": ([1, 2], [{"type": "int", "value": 1}, {"type": "int", "value": 2}]),
        "dict": ({"a": 1}, {"a": {"type": "int", "value": 1}}),
        "pair": (Pair(1, None), {"left": {"type": "int", "value": 1}, "right": None}),
        "cycle": (cycle, [{"type": "int", "value": 1}, None]),
        "object": (object(), None),
    }
    given = {key: value for key, (value, _) in values.items()}
    given["options"] = Options(2.0, X)
    given["array"] = np.arange(4, dtype=np.float32)
    given["deep"] = deep

    def relu(input, **kwargs):
        return input

    monkeypatch.setattr(ops, "relu", relu)
    _, dump = debug.record(lambda: ops.relu(X, **given))
    recorded = dump.data["Functional.relu.0.forward"]["input_kwargs"]
    for key, (_, expected) in values.items():
        assert recorded[key] == expected, key
    assert recorded["options"]["scale"] == {"type": "float", "value": 2.0}
    assert recorded["options"]["where"]["type"] == "mindspore.Tensor"
    assert recorded["array"] == {
        "type": "numpy.ndarray",
        "dtype": "float32",
        "shape": [4],
        "Max": 3.0,
        "Min": 0.0,
        "Mean": 1.5,
        "Norm": pytest.approx(14**0.5),
    }


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ((X, 1), ["mindspore.Tensor", "int"]),
        ([X, 1], [list]),
        (X, ["mindspore.Tensor"]),
        (None, [None]),
        ({"a": X}, [dict]),
        ((), []),
    ],
)
def test_results_of_every_kind_are_recorded_and_returned_unchanged(
    debug, monkeypatch, value, kinds
):
    monkeypatch.setattr(ops, "relu", lambda x: value)
    result, dump = debug.record(lambda: ops.relu(X))
    assert result is value
    output = dump.data["Functional.relu.0.forward"]["output"]
    assert [
        item.get("type", dict) if isinstance(item, dict) else item and type(item) for item in output
    ] == kinds


def test_a_function_that_the_user_puts_in_place_of_an_api_runs(debug, monkeypatch):
    debugger = debug()
    debugger.start()
    ops.relu(X)
    debugger.step()
    monkeypatch.setattr(ops, "relu", lambda x: x * 0.0)
    debugger.start()
    assert ops.relu(X).asnumpy().max() == 0.0
    debugger.step()
    assert debug.dump(1).data["Functional.relu.0.forward"]["output"][0]["Max"] == 0.0


KINDS = {
    "masked": np.ma.array([1.0, 2.0], mask=[0, 1]),
    "matrix": np.array([[1.0, 2.0], [2.0, 4.0]]).view(np.matrix),
    "longdouble": np.array([3.0, 4.0], np.longdouble),
    "clongdouble": np.array([3.0 + 4.0j], np.clongdouble),
    "record": np.zeros(2, [("a", "f4")]),
    "void": np.zeros(2, "V4"),
    "text": np.array(["a"]),
    "date": np.array(["2026-01-01"], "datetime64[D]"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_an_array_of_an_unusual_kind_loses_nothing_else(debug, kind, task):
    class Second(nn.Cell):
        def construct(self, x, other):
            return x

    net = nn.SequentialCell(nn.ReLU())
    net.append(Second())
    _, dump = debug.record(lambda: net[1](X, KINDS[kind]), net, level="L0", task=task)
    entry = dump.data["Cell.1.Second.forward.0"]
    assert (entry["input_args"][0]["Max"], entry["output"][0]["Max"]) == (
        X.asnumpy().max(),
        X.asnumpy().max(),
    )
    record = entry["input_args"][1]
    expected = {"masked": 5**0.5, "matrix": 5.0, "longdouble": 5.0, "clongdouble": 5.0}
    assert record["Norm"] == (pytest.approx(expected[kind]) if kind in expected else None)
    assert ("data_name" in record) == (task == "tensor" and kind in {*expected, "date"})


def test_a_static_method_of_tensor_is_called_through_a_tensor_as_without_probe(debug):
    x = tensor([1.0])
    made, dump = debug.record(lambda: (x.from_numpy(np.ones(2)), Tensor.from_numpy(np.ones(2))))
    assert [item.asnumpy().tolist() for item in made] == [[1.0, 1.0], [1.0, 1.0]]
    entry = dump.data["Tensor.from_numpy.0.forward"]
    assert [item["type"] for item in entry["input_args"]] == ["numpy.ndarray"]
    assert "Tensor.from_numpy.1.forward" in dump.data
    assert isinstance(vars(Tensor)["from_numpy"], staticmethod)


def test_the_file_of_a_keyword_argument_is_named_by_its_keyword(debug):
    _, dump = debug.record(
        lambda: ops.clamp(X, min=tensor([[0.0, 0.0], [0.0, 0.0]])), task="tensor"
    )
    record = dump.data["Functional.clamp.0.forward"]["input_kwargs"]["min"]
    assert record["data_name"] == "Functional.clamp.0.forward.kwargs.min.npy"
    assert dump.array(record["data_name"]).tolist() == [[0, 0], [0, 0]]


def test_the_file_of_a_tensor_in_a_list_is_named_by_its_index(debug):
    _, dump = debug.record(lambda: ops.concat([X, X]), task="tensor")
    names = [
        record["data_name"] for record in dump.data["Functional.concat.0.forward"]["input_args"][0]
    ]
    assert names == [f"Functional.concat.0.forward.input.0.{i}.npy" for i in range(2)]


def test_tensor_list_writes_the_arrays_of_the_calls_it_names(debug):
    _, dump = debug.record(lambda: ops.tanh(ops.exp(X)), tensor_list=["tanh"])
    assert "data_name" in dump.data["Functional.tanh.0.forward"]["output"][0]
    assert "data_name" not in dump.data["Functional.exp.0.forward"]["output"][0]


def test_md5_is_the_crc_of_the_bytes(debug):
    import zlib

    _, dump = debug.record(lambda: ops.exp(X), summary_mode="md5")
    record = dump.data["Functional.exp.0.forward"]["input_args"][0]
    assert record["md5"] == f"{zlib.crc32(X.asnumpy().tobytes()):08x}"


def test_scope_includes_its_first_and_its_last_call(debug):
    def work():
        for _ in range(4):
            ops.exp(X)
            ops.tanh(X)

    _, dump = debug.record(work, scope=["Functional.tanh.1.forward", "Functional.exp.3.forward"])
    assert list(dump.data) == [
        "Functional.tanh.1.forward",
        "Functional.exp.2.forward",
        "Functional.tanh.2.forward",
        "Functional.exp.3.forward",
    ]
    assert all(entry["output"] for entry in dump.data.values())


def test_list_matches_by_substring_forward_and_backward(debug):
    _, dump = debug.record(lambda: ms.grad(lambda x: ops.tanh(ops.exp(x)).sum())(X), list=["tanh"])
    assert list(dump.data) == ["Functional.tanh.0.forward", "Functional.tanh.0.backward"]


class Pair(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(2, 2), nn.Dense(2, 2)

    def construct(self, x):
        return self.second(ops.tanh(self.first(x)))


def test_list_with_a_cell_records_everything_inside_it(debug):
    net = Pair()
    run = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    _, dump = debug.record(lambda: run(X), net, level="mix", list=["second"])
    assert {name.split(".")[0] for name in dump.data} == {"Cell", "Primitive"}
    assert (
        "Cell.second.Dense.forward.0" in dump.data and "Cell.second.Dense.backward.0" in dump.data
    )
    assert "Cell.second.Dense.parameters_grad.0" in dump.data
    assert (
        "Primitive.matmul.MatMul.1.backward" in dump.data
        and "Primitive.matmul.MatMul.0.forward" not in dump.data
    )
    assert not [name for name in dump.data if "first" in name or "tanh" in name]
    assert all(parent is None or parent in dump.construct for parent in dump.construct.values())


def test_scope_may_begin_with_a_cell(debug):
    net = Pair()
    _, dump = debug.record(
        lambda: net(X),
        net,
        level="mix",
        scope=["Cell.first.Dense.forward.0", "Functional.tanh.0.forward"],
    )
    assert "Cell.first.Dense.forward.0" in dump.data and "Functional.tanh.0.forward" in dump.data
    assert not [name for name in dump.data if "second" in name or "MatMul.1" in name]


@pytest.mark.parametrize(
    ("modes", "keys"),
    [
        (["forward"], {"Functional.exp.0.forward": ["input_args", "input_kwargs", "output"]}),
        (["backward"], {"Functional.exp.0.backward": ["input", "output"]}),
        (
            ["input"],
            {
                "Functional.exp.0.forward": ["input_args", "input_kwargs"],
                "Functional.exp.0.backward": ["input"],
            },
        ),
        (["forward", "output"], {"Functional.exp.0.forward": ["output"]}),
    ],
)
def test_data_mode_leaves_out_the_other_keys(debug, modes, keys):
    _, dump = debug.record(lambda: ms.grad(lambda x: ops.exp(x))(X), data_mode=modes)
    assert {name: list(entry) for name, entry in dump.data.items()} == keys


def test_names_of_entries_and_files_have_only_characters_that_readers_accept(debug):
    net = Pair()
    run = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    _, dump = debug.record(lambda: run(X), net, level="mix", task="tensor")
    for name in [*dump.data, *(path.name for path in (dump.folder / "dump_tensor_data").iterdir())]:
        assert re.fullmatch(r"[a-zA-Z0-9_.:/-]{1,255}", name)


def test_the_stack_names_the_users_frames_innermost_first(debug):
    _, dump = debug.record(lambda: ops.exp(X) + ops.exp(X))
    names, frames = dump.stack["0"]
    assert list(dump.stack) == ["0"]
    assert names == [
        "Functional.exp.0.forward",
        "Functional.exp.1.forward",
        "Tensor.__add__.0.forward",
    ]
    assert re.fullmatch(
        rf"File {re.escape(__file__)}, line \d+, in <lambda>, \n _, dump = debug\.record\(.*",
        frames[0],
    )
    assert not [
        frame for frame in frames if "/probe/" in frame.split(",")[0] and "/tests/" not in frame
    ]


def test_a_file_name_that_is_too_long_is_shortened_and_mapped(debug, monkeypatch):
    name = "n" * 300
    monkeypatch.setattr(ops, "relu", lambda x, **kwargs: x)
    _, dump = debug.record(lambda: ops.relu(X, **{name: X}), task="tensor")
    record = dump.data["Functional.relu.0.forward"]["input_kwargs"][name]
    assert len(record["data_name"]) <= 255
    np.testing.assert_array_equal(dump.array(record["data_name"]), X.asnumpy())
    mapping = (dump.folder / "dump_tensor_data" / "mapping.csv").read_text()
    assert mapping == f"{record['data_name']},Functional.relu.0.forward.kwargs.{name}.npy\n"


def test_support_ops_replaces_the_shipped_list_of_apis(debug, tmp_path):
    listed = tmp_path / "mine.yaml"
    listed.write_text("ops: [tanh, no_such_name]\nmint.ops: [add]\n")
    _, dump = debug.record(lambda: mint.add(ops.tanh(ops.exp(X)), X), support_ops=str(listed))
    assert list(dump.data) == ["Functional.tanh.0.forward", "Mint.add.0.forward"]


def test_an_unknown_section_in_the_list_of_apis_is_named(debug, tmp_path):
    from probe import SettingsError

    listed = tmp_path / "mine.yaml"
    listed.write_text("opps: [tanh]\n")
    with pytest.raises(SettingsError, match=r"unknown section: 'opps'.*Did you mean 'ops'"):
        debug(support_ops=str(listed)).start()


def test_a_call_in_place_has_the_input_before_it_and_the_output_after_it(debug):
    def function(x, y):
        z = x * 1.0
        z = z.add_(y)  # on CPU these return the result and leave z as it was
        z = z.mul_(2.0)
        z += y
        w = x * 1.0
        w.copy_(y)  # this one does change w
        return (z * z).sum() + (w * w).sum()

    y = tensor([[1.0, 1.0], [2.0, 2.0]])
    expected = ms.grad(function, (0, 1))(X, y)
    result, dump = debug.record(lambda: ms.grad(function, (0, 1))(X, y), task="tensor")
    for mine, bare in zip(result, expected):
        np.testing.assert_array_equal(mine.asnumpy(), bare.asnumpy())
    z, one = X.asnumpy(), y.asnumpy()
    for name, before, after in [
        ("add_", z, z + one),
        ("mul_", z + one, (z + one) * 2),
        ("__iadd__", (z + one) * 2, (z + one) * 2 + one),
    ]:
        entry = dump.data[f"Tensor.{name}.0.forward"]
        np.testing.assert_array_equal(dump.array(entry["input_args"][0]["data_name"]), before)
        np.testing.assert_array_equal(dump.array(entry["output"][0]["data_name"]), after)
    copied = dump.data["Tensor.copy_.0.forward"]
    np.testing.assert_array_equal(dump.array(copied["input_args"][0]["data_name"]), z)
    np.testing.assert_array_equal(dump.array(copied["output"][0]["data_name"]), one)
    final = 2 * ((z + one) * 2 + one)
    assert dump.array("Tensor.__iadd__.0.backward.input.0.npy").tolist() == final.tolist()
    assert dump.array("Tensor.__iadd__.0.backward.output.1.npy").tolist() == final.tolist()
    assert dump.array("Tensor.mul_.0.backward.output.0.npy").tolist() == (2 * final).tolist()
    assert dump.array("Tensor.add_.0.backward.output.1.npy").tolist() == (2 * final).tolist()
