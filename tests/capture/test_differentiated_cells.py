# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Cells that begin the graph themselves, and calls that use tensors which are not their arguments."""

from __future__ import annotations

import types

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

from tests.support.tensors import tensor

X = tensor(np.arange(8.0).reshape(2, 4) / 8)


def norm(array):
    return pytest.approx(float(np.linalg.norm(array)), rel=1e-5)


def test_the_loss_cell_of_a_training_cell_has_its_backward_entry(debug):
    net = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU(), nn.Dense(4, 1))
    train = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.01)
    ).set_train()
    _, dump = debug.record(lambda: train(X, tensor(np.ones((2, 1)))), train, level="L0")
    entry = dump.data["Cell.network.WithLossCell.backward.0"]
    assert entry["input"][0]["Norm"] == 1.0
    assert set(dump.construct) <= {*dump.data, None}


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 3)

    def construct(self, x, scale):
        return (self.fc(x) * scale).sum()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()


@pytest.mark.parametrize("task", ["statistics", "structure"])
@pytest.mark.parametrize("level", ["L0", "mix"])
def test_a_cell_below_the_model_that_is_differentiated_has_the_entries_of_a_function_around_it(
    debug, level, task
):
    net = Net()
    scale = tensor([2.0])

    def run(function):
        debug.dump_path = debug.path / function
        called = net.inner if function == "cell" else lambda x, scale: net.inner(x, scale)
        weights = ms.ParameterTuple(net.trainable_params())
        return debug.record(
            lambda: ms.grad(called, (0, 1), weights)(X, scale), net, level=level, task=task
        )

    (found, dump), (expected, other) = run("cell"), run("function")
    for ours, theirs in zip(found[0] + found[1], expected[0] + expected[1]):
        assert ours.asnumpy().tobytes() == theirs.asnumpy().tobytes()
    assert dump.data == other.data
    assert dump.construct == other.construct
    assert "Cell.inner.Inner.backward.0" in dump.construct
    if task == "statistics":
        given, by = dump.data["Cell.inner.Inner.backward.0"]["output"]
        assert (given["Norm"], by["Norm"]) == (
            norm(found[0][0].asnumpy()),
            norm(found[0][1].asnumpy()),
        )


def test_a_function_of_the_user_that_uses_other_tensors_has_its_own_gradients(debug):
    module, state = types.ModuleType("mine"), {}
    module.gate = lambda x: x * state["t"]
    value = tensor([0.5, -1.0, 2.0])

    def function(x):
        x = x * 1.0
        state["t"] = ops.exp(x)
        return module.gate(x).sum()

    debugger = debug(level="L1")
    debugger.register_custom_api(module, "gate", "Mine")
    debugger.start()
    ms.grad(function)(value)
    debugger.stop()
    debugger.step()
    dump = debug.dump()
    assert dump.data["Mine.gate.0.backward"]["output"][0]["Norm"] == norm(np.exp(value.asnumpy()))
    assert dump.names("backward").index("Mine.gate.0.backward") < dump.names("backward").index(
        "Functional.exp.0.backward"
    )


class Twice(nn.Cell):
    def construct(self, x):
        y = ops.sin(x)
        return y, y


class TwiceOfTwoNodes(nn.Cell):
    def construct(self, x):
        y = ops.sin(x) * 1.0
        return y, y


@pytest.mark.parametrize("cell", [Twice, TwiceOfTwoNodes])
def test_a_tensor_that_is_returned_twice_has_its_gradient_in_the_first_place(debug, cell):
    net = nn.SequentialCell(cell())

    def function(x):
        first, second = net[0](x)
        return (first * 3 + second * 5).sum()

    _, dump = debug.record(lambda: ms.grad(function)(tensor([0.0])), net, level="L0")
    [name] = dump.names("backward")
    first, second = dump.data[name]["input"]
    assert (first["Norm"], second) == (8.0, None)


class BatchNorm(nn.Cell):
    """Of the user, not MindSpore's."""

    def construct(self, x):
        return x - x.mean(), x.mean(0), x.std(0)


def test_a_cell_of_the_user_named_as_a_primitive_has_all_its_outputs(debug):
    net = nn.SequentialCell(BatchNorm())
    result, dump = debug.record(lambda: net(X), net, level="L0")
    recorded = dump.data["Cell.0.BatchNorm.forward.0"]["output"]
    assert [record["Norm"] for record in recorded] == [norm(output.asnumpy()) for output in result]
