# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Every operation is in an entry, also one that no listed API covers."""

from __future__ import annotations

import sys

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from mindspore.common._grad_function import _Function
from mindspore.ops import relu as relu_by_name

from tests.support import interference, nets
from tests.support.graph import unseen_nodes

ADD_BY_NAME = mint.add
BUILDERS = {
    **interference.NETS,
    **{name: lambda name=name: nets.build(name) for name in ("lenet", "gpt", "digits")},
}

#: docs/limits.md: the node of a recomputed Cell as a whole
KNOWN_UNSEEN = {("recomputed", "L1"): ["CellCustomBackward"]}


def x():
    return Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


class Square(_Function):
    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value * value

    @staticmethod
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return gradient * value * 2


class OwnBprop(nn.Cell):
    def construct(self, value):
        return ops.exp(value)

    def bprop(self, value, out, dout):
        return (dout * out,)


class Table(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = {"a": [ops.Softmax()]}

    def construct(self, value):
        return self.table["a"][0](value)


CASES = {
    "a Primitive made inline": (lambda value: ops.Sigmoid()(value), "Primitive.fn:{owner}.Sigmoid"),
    "a Primitive in a table": (Table(), "Primitive.fn:Table.Softmax"),
    "a function taken by name": (relu_by_name, "Functional.relu"),
    "an overloaded function taken by name": (lambda value: ADD_BY_NAME(value, value), "Mint.add"),
    "nn.SiLU": (nn.SiLU(), "Functional.silu"),
    "nn.ReflectionPad1d": (
        lambda value: nn.ReflectionPad1d(1)(value),
        "Primitive.fn:ReflectionPad1d.MirrorPad",
    ),
    "mindspore.numpy": (lambda value: mnp.tanh(value), "Numpy.tanh"),
    "ops.functional": (lambda value: ops.functional.exp(value), "Functional.exp"),
    "_Function": (lambda value: Square.apply(value), "Primitive.fn:Square.backward"),
    "a Cell with a bprop": (OwnBprop(), "Primitive.fn:OwnBprop.bprop"),
    "astype": (lambda value: value.astype(ms.float16).sum(), "Tensor.to"),
}


#: with "early_names": false functions taken before start are operations of no listed API
WITHOUT_EARLY_NAMES = {
    "a function taken by name": "Primitive.fn:relu.ReLU",
    "an overloaded function taken by name": "Primitive.fn:add.add",
    "nn.SiLU": "Primitive.fn:silu.SiLU",
}


@pytest.mark.parametrize(
    ("case", "early_names"),
    [*((case, True) for case in CASES), *((case, False) for case in WITHOUT_EARLY_NAMES)],
)
def test_an_operation_of_no_listed_api_has_a_forward_and_a_backward_entry(debug, case, early_names):
    function, key = CASES[case]
    if not early_names:
        key = WITHOUT_EARLY_NAMES[case]
    key = key.format(owner=getattr(function, "__name__", "").replace("<", "_").replace(">", "_"))
    bare, bare_gradient = (
        function(x()).asnumpy(),
        ms.grad(lambda value: function(value).sum())(x()).asnumpy(),
    )
    debugger = debug(level="L1", task="tensor", early_names=early_names)
    debugger.start()
    _, gradient = ms.value_and_grad(lambda value: function(value).sum())(x())
    debugger.stop()
    debugger.step()
    dump = debug.dump()
    entry = dump.data[f"{key}.0.forward"]
    given = next(
        record for record in entry["input_args"] if record and record["type"] == "mindspore.Tensor"
    )
    np.testing.assert_array_equal(dump.array(given["data_name"]), x().asnumpy())
    result = entry["output"][0]
    if list(bare.shape) == result["shape"]:
        np.testing.assert_array_equal(dump.array(result["data_name"]), bare)
    backward = dump.data[f"{key}.0.backward"]["output"][0]
    if (
        gradient.asnumpy().shape == tuple(backward["shape"])
        and case != "an overloaded function taken by name"
    ):
        np.testing.assert_array_equal(dump.array(backward["data_name"]), bare_gradient)
    np.testing.assert_array_equal(gradient.asnumpy(), bare_gradient)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["L1", "mix"])
@pytest.mark.parametrize("name", BUILDERS)
def test_every_node_of_the_graph_is_inside_a_recorded_call(debug, monkeypatch, name, level):
    net, train = BUILDERS[name]()
    debugger = debug(level=level)
    debugger.start(net)
    with unseen_nodes(monkeypatch) as graph:
        train(0)
    debugger.stop()
    debugger.step()
    assert graph.nodes > 3
    assert graph.unseen == KNOWN_UNSEEN.get((name, level), [])
    assert set(graph.calls) <= set(debug.dump().data)


def test_without_unlisted_only_listed_apis_are_recorded(debug, tmp_path):
    def names(**settings):
        debugger = debug(**settings)
        debugger.start()
        ops.Sigmoid()(ops.exp(x()))
        debugger.stop()
        debugger.step()
        return list(debug.dump().data)

    own = tmp_path / "ops.yaml"
    own.write_text("ops:\n  - exp\n")
    inline = ["Primitive.fn:names.Sigmoid.0.forward"]
    assert names(unlisted=False) == ["Functional.exp.0.forward"]
    assert names() == ["Functional.exp.0.forward", *inline]
    assert names(support_ops=str(own)) == ["Functional.exp.0.forward"]
    assert names(support_ops=str(own), unlisted=True) == ["Functional.exp.0.forward", *inline]


def test_list_and_exclude_apply_to_operations(debug):
    def names(**settings):
        debugger = debug(**settings)
        debugger.start()
        ops.Tanh()(ops.Sigmoid()(x()))
        debugger.stop()
        debugger.step()
        return list(debug.dump().data)

    assert names(list=["Tanh"]) == ["Primitive.fn:names.Tanh.0.forward"]
    assert names(exclude=["Tanh"]) == ["Primitive.fn:names.Sigmoid.0.forward"]


@pytest.mark.parametrize("optimizer", [nn.Adam, ms.experimental.optim.Adam, mint.optim.Adam])
def test_nothing_inside_an_optimizer_is_recorded(debug, optimizer):
    net = nn.Dense(4, 2)
    update = optimizer(net.trainable_params())
    gradients = tuple(ops.ones_like(parameter) for parameter in net.trainable_params())
    try:
        update(gradients)
    except RuntimeError as error:
        pytest.skip(f"this optimizer does not run on CPU: {str(error).splitlines()[0]}")
    debugger = debug(level="mix")
    debugger.start(net)
    update(gradients)
    ops.exp(x())
    debugger.stop()
    debugger.step()
    assert list(debug.dump().data) == ["Cell.optimizer.Adam.forward.0", "Functional.exp.0.forward"]


@pytest.mark.parametrize("settings", [{"measure": "device"}, {"async_dump": True}])
def test_operations_of_the_tool_are_not_recorded(debug, settings):
    net, train = nets.build("digits")

    def names(**more):
        debugger = debug(level="mix", **more)
        debugger.start(net)
        train(0)
        debugger.stop()
        debugger.step()
        return list(debug.dump().data)

    assert names(**settings) == names()


def test_every_replaced_function_is_the_original_again(debug):
    def places():
        return {
            (name, attribute): value
            for name, module in list(sys.modules.items())
            if name.startswith("mindspore") and isinstance(getattr(module, "__dict__", None), dict)
            for attribute, value in list(vars(module).items())
            if attribute.startswith(("pyboost_", "_")) and callable(value)
        }

    debugger = debug(level="mix")
    net, train = nets.build("digits")
    debugger.start(net)  # imports modules
    debugger.stop()
    before = places()
    debugger.start(net)
    during = places()
    train(0)
    debugger.stop()
    after = places()
    assert sum(during[place] is not before[place] for place in before) > 500
    assert [place for place in before if after[place] is not before[place]] == []
    debugger.step()
