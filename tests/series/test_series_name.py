# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names of series are taken apart as they were made."""

from __future__ import annotations

import pytest

from probe.series.series_name import Slot, kind_of, kinds_of_tensor, layer_kind, parse, slot_of


@pytest.mark.parametrize(
    ("name", "kind", "owner", "statistic"),
    [
        ("loss", "loss", "", "norm"),
        ("loss1", "loss", "", "norm"),
        ("losses", "logged", "", "norm"),
        ("loss_scale", "scale", "", "norm"),
        ("fc.weight.grad", "grad", "fc.weight", "norm"),
        ("fc.weight.grad.min", "grad", "fc.weight", "min"),
        ("fc.weight.grad_in", "grad_in", "fc.weight", "norm"),
        ("fc.weight.param", "param", "fc.weight", "norm"),
        ("fc.bias.param", "bias", "fc.bias", "norm"),
        ("fc.weight.update", "update", "fc.weight", "norm"),
        ("optimizer1.global_norm", "total", "optimizer1", "norm"),
        ("optimizer.learning_rate", "scalar", "optimizer", "norm"),
        ("optimizer.learning_rate.1", "scalar", "optimizer.learning_rate", "norm"),
        ("optimizer.moment1.fc.weight", "state", "fc.weight", "norm"),
        ("seconds", "seconds", "", "norm"),
        ("validation loss", "logged", "", "norm"),
        ("Cell.fc.Dense.forward.0.output.0", "cell", "Cell.fc.Dense.forward.0.output", "norm"),
    ],
)
def test_a_name_says_kind_owner_and_statistic(name, kind, owner, statistic):
    assert parse(name)[:3] == (kind, owner, statistic)
    assert kind_of(name) == (kind if statistic == "norm" else "end")


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("key", ["Cell.layers.0.fc.Dense", "Cell.Dense"])
def test_the_name_of_a_cells_tensor_is_its_slot(direction, key):
    slot = Slot(key, direction, "3", "input.1")
    assert slot_of(str(slot)) == slot
    assert slot_of(f"{slot}.max") == slot
    assert slot.path == ("layers.0.fc" if "layers" in key else "")
    assert slot.in_cell == ("input_1" if direction == "forward" else "output_1")


@pytest.mark.parametrize(
    "name", ["loss", "fc.weight.grad", "Cell.fc.Dense.forward.0.output.x", "Cell.fc.Dense"]
)
def test_other_names_have_no_slot(name):
    assert slot_of(name) is None


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("Cell.fc.Dense.parameters_grad.0.weight.0", {"any", "gradient"}),
        ("Cell.fc.Dense.forward.0.parameters.weight", {"any", "parameter"}),
        ("Functional.relu.0.forward.output.0", {"any", "activation", "relu"}),
        ("Cell.act.ReLU6.forward.12.output.0", {"any", "activation", "relu"}),
        ("Tensor.add.0.forward.output.0", {"any", "activation"}),
        ("Tensor.add.0.backward.output.0", {"any"}),
        ("Cell.opt.Adam.forward.0.learning_rate.1", set()),
    ],
)
def test_the_name_of_a_tensor_in_a_dump_says_its_kinds(name, kinds):
    assert kinds_of_tensor(name) == kinds


def test_layers_of_a_kind_share_a_name_without_numbers():
    names = [f"Cell.blocks.{place}.fc.Dense.forward.0.output.0" for place in range(12)]
    assert len({layer_kind(name) for name in names}) == 1
    assert (
        layer_kind("Cell.fc.Dense.forward.0.output.0")
        == layer_kind("Tensor.add.0.forward.output.0")
        == ""
    )
