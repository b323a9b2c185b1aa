# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far an update can change a parameter is said only of optimizers whose update is known."""

from __future__ import annotations

import pytest

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
        (Update("Adam", beta1=0.9, beta2=0.999), 8.0),
    ],
)
def test_the_bound_of_a_known_update(update, allowed):
    assert bound(update, "weight", size=16) == allowed


@pytest.mark.parametrize(
    "kind", ["FTRL", "Adagrad", "RMSProp", "Rprop", "LARS", "Adadelta", "ProximalAdagrad", "Own"]
)
def test_another_update_has_no_bound(kind):
    assert bound(Update(kind), "weight", size=16) is None
