# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far an update can change a parameter is said only of optimizers whose update is known."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe
from probe.reading.one_run.health.in_place import bound


class Update:
    """The update of one parameter by a gradient of norm 3, with a learning rate of 0.5."""

    def __init__(self, kind, **numbers):
        self.name = f"Cell.optimizer1.{kind}.forward.2"
        self.entered = {"weight": {"type": "mindspore.Tensor", "Norm": 3.0}}
        self.numbers = {
            "learning_rate": {"weight": 0.5},
            **{key: {"weight": value} for key, value in numbers.items()},
        }

    def number(self, key, parameter, default=0.0):
        return self.numbers.get(key, {}).get(parameter, default)


@pytest.mark.parametrize(
    ("update", "allowed"),
    [
        (Update("SGD"), 6.0),
        (Update("Momentum", momentum=0.9, global_step=0), 6.0),
        (Update("Momentum", momentum=0.9, global_step=1), None),
        (Update("Adam", beta1=0.0, beta2=0.5), 8.0),
        (Update("Adam", beta1=0.9, beta2=0.999), pytest.approx(2 * 7.27, rel=1e-3)),
        (Update("Adam", beta1=0.9, beta2=0.5), math.inf),
    ],
)
def test_the_bound_of_a_known_update(update, allowed):
    assert bound(update, "weight", size=16) == allowed


@pytest.mark.parametrize(
    "kind", ["FTRL", "Adagrad", "RMSProp", "Rprop", "LARS", "Adadelta", "ProximalAdagrad", "Own"]
)
def test_another_update_has_no_bound(kind):
    assert bound(Update(kind), "weight", size=16) is None


@pytest.mark.parametrize(("factor", "is_named"), [(1.0, False), (3.0, True)])
def test_adam_without_a_correction_of_the_bias_changes_a_parameter_fast(tmp_path, factor, is_named):
    """Equal gradients change each element by 6.6 times the rate in the twelfth step."""
    net = nn.SequentialCell(nn.Dense(4, 3, weight_init="ones"), nn.ReLU())
    optimizer = nn.AdamWeightDecay(net.trainable_params(), learning_rate=0.003)
    gradient = ms.value_and_grad(lambda x: ops.sum(net(x)), None, optimizer.parameters)
    x = Tensor(np.ones((2, 4), np.float32))
    debugger = probe.PrecisionDebugger(dump_path=str(tmp_path), level="mix", step=[10, 11, 12])
    for step in range(14):
        debugger.start(net)
        _, gradients = gradient(x)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
        if step == 11:
            ops.assign(net[0].weight, net[0].weight - 0.02 * (factor - 1))
    debugger.close()
    said = [str(item.whole) for item in probe.check(tmp_path).findings]
    assert any("than the update can do" in line for line in said) == is_named, said
