# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Models that change while they are recorded: their parameters, what is trained, which of them is started."""

from __future__ import annotations

import gc
import weakref

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from probe import PrecisionDebugger
from tests.support.tensors import tensor

X = tensor(np.arange(8.0).reshape(2, 4) / 8)


class Two(nn.Cell):
    """A generator and a discriminator."""

    def __init__(self):
        super().__init__()
        self.g, self.d = nn.Dense(4, 4), nn.Dense(4, 1)

    def construct(self, x):
        return self.d(self.g(x)).mean()


def gradients(net, parameters):
    return ms.value_and_grad(net, None, ms.ParameterTuple(parameters))(X)


def test_parts_that_are_trained_in_turn_have_their_gradients_in_every_step(debug):
    net = Two()
    parts = [list(part.get_parameters()) for part in (net.d, net.g)]
    debugger = debug(level="L0")
    for step in range(3):
        debugger.start(net)
        for trained in parts:
            for parameter in net.get_parameters():
                parameter.requires_grad = any(parameter is one for one in trained)
            gradients(net, trained)
        debugger.stop()
        debugger.step()
        assert debug.dump(step).names("parameters_grad") == [
            "Cell.d.Dense.parameters_grad.0",
            "Cell.g.Dense.parameters_grad.0",
        ]


def test_a_parameter_that_is_replaced_between_two_calls_has_its_values_and_gradients(debug):
    net = nn.SequentialCell(nn.Dense(4, 4))
    held = []

    def train():
        for factor in (1, 2):
            net[0].weight = ms.Parameter(net[0].weight.asnumpy() * factor, name="0.weight")
            held.append(net[0].weight)
            gradients(net, [net[0].weight])

    _, dump = debug.record(train, net, level="L0")
    recorded = [
        dump.data[name]["parameters"]["weight"]["Norm"] for name in dump.names("Dense.forward")
    ]
    assert recorded == pytest.approx([np.linalg.norm(weight.asnumpy()) for weight in held])
    assert len(dump.names("parameters_grad")) == 2


class Penalty(nn.Cell):
    def __init__(self, parameters):
        super().__init__()
        self.weights = ms.ParameterTuple(parameters)

    def construct(self):
        return sum((weight * weight).sum() for weight in self.weights)


class Penalized(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Dense(4, 8), nn.Dense(8, 2)
        self.penalty = Penalty(self.trainable_params())

    def construct(self, x):
        return self.fc2(self.fc1(x)).sum() + self.penalty()


def test_parameters_of_one_cell_whose_names_end_alike_have_their_whole_names(debug):
    net = Penalized()
    _, dump = debug.record(lambda: gradients(net, net.trainable_params()), net, level="L0")
    recorded = dump.data["Cell.penalty.Penalty.forward.0"]["parameters"]
    assert {name: record["Norm"] for name, record in recorded.items()} == {
        parameter.name: pytest.approx(np.linalg.norm(parameter.asnumpy()))
        for parameter in net.trainable_params()
    }
    assert len(recorded) == 4
    found = dict(
        item for name in dump.names("Penalty.parameters_grad") for item in dump.data[name].items()
    )
    assert found.keys() == recorded.keys()


def test_models_started_in_turn_have_every_gradient_once(debug):
    models = [nn.SequentialCell(nn.Dense(4, 4)) for _ in range(2)]
    debugger = debug(level="L0")
    for net in (*models, models[0]):
        debugger.start(net)
        gradients(net, net.trainable_params())
        debugger.stop()
    debugger.step()
    assert len(debug.dump().names("Dense.forward")) == 3
    assert len(debug.dump().names("parameters_grad")) == 3


def test_a_model_below_another_model_is_recorded(debug):
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Tanh())
    _, dump = debug.record(lambda: net(X), [net, net[0]], level="L0")
    assert dump.names() == ["Cell.0.0.Dense.forward.0", "Cell.0.1.Tanh.forward.0"]


class Big:
    pass


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)

    def construct(self, x):
        y = self.fc(x)
        PrecisionDebugger.stop()
        return y


class Outer(nn.Cell):
    def __init__(self, made):
        super().__init__()
        self.inner, self._made = Inner(), made

    def construct(self, x):
        local = Big()
        self._made.append(weakref.ref(local))
        return self.inner(x * 2).sum()


def test_the_locals_of_a_cell_are_released_where_the_recording_stops_inside_it(debug):
    made = []
    net = nn.SequentialCell(Outer(made))
    debugger = debug(level="mix")
    for _ in range(3):
        debugger.start(net)
        ms.grad(net, None, net.trainable_params())(X)
        debugger.step()
    gc.collect()
    assert [local() for local in made] == [None] * 3
