# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters of equal names: those of two models, and those of a layer that was replaced, stay two."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from probe.__main__ import main
from probe.capture.pynative.cells import iter_cells
from probe.parameter_names import ParameterNames
from probe.series.series import open_series
from tests.support.chinese import english_left

OF_BOTH = [
    f"{model}.{cell}.{key}"
    for model in (0, 1)
    for cell in ("first", "last")
    for key in ("weight", "bias")
]


class Net(nn.Cell):
    def __init__(self, wide, narrow):
        super().__init__()
        self.first, self.last = nn.Dense(wide, 4), nn.Dense(4, narrow)

    def construct(self, x):
        return self.last(ops.relu(self.first(x)))


class Pair:
    """Two nets with equal names of parameters, and an optimizer for each."""

    def __init__(self, scale=1.0):
        ms.set_seed(1)
        self.nets = [Net(3, 2), Net(2, 1)]
        self.nets[1].first.weight.set_data(self.nets[1].first.weight * scale)
        self.optimizers = [
            nn.SGD(net.trainable_params(), rate) for net, rate in zip(self.nets, (0.1, 0.2))
        ]
        self.z, self.x = (
            ms.Tensor(np.ones((3, 3), np.float32)),
            ms.Tensor(np.ones((3, 2), np.float32)),
        )
        one, two = self.nets
        self.gradients = [
            ms.value_and_grad(
                lambda: -two(one(self.z)).mean(), None, self.optimizers[0].parameters
            ),
            ms.value_and_grad(
                lambda: (two(self.x) ** 2).mean(), None, self.optimizers[1].parameters
            ),
        ]

    def train(self, debugger, steps=2):
        for _ in range(steps):
            debugger.start(self.nets)
            for differentiate, optimizer in zip(self.gradients, self.optimizers):
                _, gradients = differentiate()
                optimizer(gradients)
            debugger.stop()
            debugger.step()


def run(debug, folder, pair=None, steps=2, **settings):
    """Train a pair under a debugger; return the folder of the run."""
    debugger = debug(dump_path=str(folder), **settings)
    (pair or Pair()).train(debugger, steps)
    debugger.close()
    return folder


def names_of(cells):
    return [owned.name for owned in ParameterNames(cells).owned]


def test_names_of_a_lone_model_stay_as_they_are():
    net = Net(3, 2)
    assert names_of(iter_cells(net)) == [parameter.name for parameter in net.get_parameters()]


def test_a_name_that_occurs_once_stays_and_others_get_the_number_of_their_model():
    third = nn.SequentialCell(nn.Dense(2, 2, has_bias=False))
    third[0].weight.name = "own"
    assert names_of(iter_cells([Net(3, 2), Net(2, 1), third])) == [*OF_BOTH, "own"]


def test_a_name_with_a_number_does_not_take_that_of_another_parameter():
    one, two = (nn.SequentialCell(nn.Dense(2, 2, has_bias=False)) for _ in range(2))
    third = nn.SequentialCell(nn.Dense(2, 2, has_bias=False))
    for net, name in ((one, "w"), (two, "w"), (third, "0.w")):
        net[0].weight.name = name
    assert names_of(iter_cells([one, two, third])) == ["0.0.weight", "1.w", "0.w"]


def test_a_parameter_of_two_models_has_one_name():
    shared = nn.Dense(2, 2)
    assert len(names_of(iter_cells([nn.SequentialCell(shared), nn.SequentialCell(shared)]))) == 2


def test_a_parameter_outside_of_the_models_with_a_name_that_is_taken_gets_a_number():
    net, other = Net(3, 2), Net(3, 2)
    names = ParameterNames(iter_cells(net))
    assert names.of(net.first.weight) == "first.weight"
    assert names.of(other.first.weight) == "first.weight#2"
    assert names.of(Net(3, 2).first.weight) == "first.weight#3"
    assert names.of(other.first.weight) == "first.weight#2"


def test_names_are_not_current_after_a_parameter_was_replaced():
    net = Net(3, 2)
    names = ParameterNames(iter_cells(net))
    assert names.are_current
    net.first.weight = ms.Parameter(ms.Tensor(np.zeros((4, 3), np.float32)), name="first.weight")
    assert not names.are_current


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["host", "device"])
def test_run_json_and_updates_have_the_parameters_of_both_models(debug, tmp_path, measure):
    pair = Pair()
    before = [parameter.asnumpy() for net in pair.nets for parameter in net.get_parameters()]
    folder = run(debug, tmp_path / "dump", pair, level="mix", measure=measure) / "step0" / "rank"
    found = json.loads((folder / "run.json").read_text())["parameters"]
    assert list(found) == OF_BOTH
    assert [item["values"]["shape"] for item in found.values()] == [
        list(array.shape) for array in before
    ]
    data = json.loads((folder / "dump.json").read_text())["data"]
    updates = {name: entry for name, entry in data.items() if name.startswith("Cell.optimizer")}
    shown = [
        [item["value"] for item in entry["input_kwargs"]["parameters"]]
        for entry in updates.values()
    ]
    assert shown == [OF_BOTH[:4], OF_BOTH[4:]]
    numbers = [key for entry in updates.values() for key in entry["input_kwargs"]]
    assert not {"last.bias", "1.last.bias"} & {
        *numbers
    }  # a parameter of one element is no number of its optimizer
    lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    crcs = [list(line["crc"]) for line in lines if "updated" in line]
    assert crcs == ([OF_BOTH[:4], OF_BOTH[4:]] * 2 if measure == "host" else [])


@pytest.mark.slow
def test_check_names_the_weight_of_the_second_model_that_differs(debug, tmp_path, capsys):
    a = run(debug, tmp_path / "a", level="mix")
    twin = run(debug, tmp_path / "twin", level="mix")
    b = run(debug, tmp_path / "b", Pair(scale=3.0), level="mix")
    same = probe.check(a, twin)
    assert same.ok
    assert "8 parameters" in str(same)
    assert main(["check", str(a), str(b), "--lang", "en"]) == 1
    shown = capsys.readouterr().out
    assert "1 of 8 differ, first 1.first.weight in Cell 1.first (Dense)" in shown
    assert main(["check", str(a), str(b), "--json"]) == 1
    assert "1.first.weight" in json.loads(capsys.readouterr().out)["differences"][0]["sentence"]
    assert main(["check", str(a), str(b), "--lang", "zh"]) == 1
    shown = capsys.readouterr().out.splitlines()[2]
    assert "1.first.weight" in shown
    assert not english_left(
        shown.replace("1.first.weight", "").replace("Cell 1.first", "").replace("Dense", "")
    )
    assert probe.check(a).findings == []


@pytest.mark.slow
def test_the_monitor_has_rows_of_both_models(debug, tmp_path):
    pair = Pair()
    (series,) = open_series(str(run(debug, tmp_path / "dump", pair, steps=1, task="monitor")))
    for name in OF_BOTH:
        for kind in ("grad", "param", "update"):
            assert f"{name}.{kind}" in series.names
    last = [parameter for net in pair.nets for parameter in net.get_parameters()]
    for name, parameter in zip(OF_BOTH, last):
        assert series[f"{name}.param"].values[-1] == pytest.approx(
            np.linalg.norm(parameter.asnumpy()), rel=1e-5
        )
    assert not any(
        name.endswith(".grad_in") for name in series.names
    )  # each gradient entered as it arrived
    assert not any(name.startswith("first.") for name in series.names)


@pytest.mark.slow
def test_the_monitor_names_a_lone_model_as_before(debug, tmp_path):
    pair = Pair()
    pair.nets, pair.optimizers, pair.gradients = (
        pair.nets[1],
        pair.optimizers[1:],
        pair.gradients[1:],
    )
    (series,) = open_series(str(run(debug, tmp_path / "dump", pair, steps=1, task="monitor")))
    assert "first.weight.grad" in series.names
    assert "first.weight.update" in series.names


@pytest.mark.slow
def test_an_optimizer_that_holds_a_replaced_layer_does_not_hold_the_new_one(debug, tmp_path):
    net = Net(3, 1)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    net.last = nn.Dense(4, 1)
    net.last.weight.name, net.last.bias.name = "last.weight", "last.bias"
    pair = Pair()
    pair.nets, pair.optimizers = net, [optimizer]
    pair.gradients = [
        ms.value_and_grad(lambda: (net(pair.z) ** 2).mean(), None, optimizer.parameters)
    ]
    folder = run(debug, tmp_path / "dump", pair, level="mix")
    data = json.loads((folder / "step0" / "rank" / "dump.json").read_text())["data"]
    held = [
        item["value"] for item in data["Cell.optimizer.SGD.forward.0"]["input_kwargs"]["parameters"]
    ]
    assert held == ["first.weight", "first.bias", "last.weight#2", "last.bias#2"]


@pytest.mark.slow
def test_models_that_start_one_after_another_have_rows_and_optimizers_of_their_own(
    debug, tmp_path, caplog
):
    pair = Pair()
    debugger = debug(dump_path=str(tmp_path / "dump"), task="monitor")
    norms = []
    for _ in range(2):
        for net, differentiate, optimizer in zip(pair.nets, pair.gradients, pair.optimizers):
            debugger.start(net)
            _, gradients = differentiate()
            optimizer(gradients)
            debugger.stop()
            norms.append(np.linalg.norm(net.first.weight.asnumpy()))
        debugger.step()
    debugger.close()
    (series,) = open_series(str(tmp_path / "dump"))
    for name, norm in zip(("first.weight", "first.weight#2"), norms):
        assert series[f"{name}.param"].values[0] == pytest.approx(norm, rel=1e-5)
        assert len(series[f"{name}.grad"].values) == 2
    assert {"optimizer.learning_rate", "optimizer1.learning_rate"} <= {*series.names}
    told = [
        record.message for record in caplog.records if "another one than before" in record.message
    ]
    assert len(told) == 1
    assert "start([first, second])" in told[0]
