# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe check of one run: which optimizer holds which parameter object. Real trainings of two small nets."""

from __future__ import annotations

import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops

import probe
from tests.reading.builders import record
from tests.reading.one_run.test_health import GRADIENT, WEIGHT, Training, forward, update
from tests.support.chinese import english_left

pytestmark = pytest.mark.slow


class Net(nn.Cell):
    def __init__(self, wide, narrow):
        super().__init__()
        self.first, self.last = nn.Dense(wide, 4), nn.Dense(4, narrow)

    def construct(self, x):
        return self.last(ops.tanh(self.first(x)))


class Pair:
    """A GAN: the second net judges the results of the first. ``prepare`` makes the optimizers."""

    def __init__(self, prepare=None):
        ms.set_seed(1)
        self.one, self.two = Net(3, 2), Net(2, 1)
        self.one.set_train()
        self.two.set_train()
        made = prepare(self) if prepare else None
        self.of_one, self.of_two = made or (self.optimizer(self.one), self.optimizer(self.two))
        random = np.random.RandomState(0)
        self.z, self.x = (ms.Tensor(random.randn(5, size).astype(np.float32)) for size in (3, 2))

    @staticmethod
    def optimizer(net):
        return nn.SGD(net.trainable_params(), 0.1)

    def loss_of_one(self):
        return (self.two(self.one(self.z)) ** 2).mean()

    def loss_of_two(self):
        return ((self.two(self.x) - 1) ** 2).mean()

    def make(self, loss, optimizer):
        _, gradients = ms.value_and_grad(loss, None, optimizer.parameters)()
        optimizer(gradients)

    def step(self, number):
        self.make(self.loss_of_two, self.of_two)
        self.make(self.loss_of_one, self.of_one)


def findings(debug, pair, models=None):
    """Train a pair for three steps; return what is found, without notes."""
    debugger = debug(level="mix", step=[0, 1, 2])
    for number in range(3):
        debugger.start(models or [pair.one, pair.two])
        pair.step(number)
        debugger.stop()
        debugger.step()
    debugger.close()
    found = probe.check(debug.dump_path).findings
    assert not any(
        english_left(item.said.text("zh").replace("Net", ""))
        for item in found
        if "model" in item.said.key
    )
    return {(item.weight, item.rule, str(item.said)) for item in found if item.weight != "note"}


def test_two_nets_with_equal_names_and_an_optimizer_each_are_healthy(debug):
    assert findings(debug, Pair()) == set()


def test_two_optimizers_of_one_net_and_the_other_net_that_none_holds_are_named(debug):
    pair = Pair(lambda pair: (pair.optimizer(pair.one), pair.optimizer(pair.one)))
    pair.loss_of_two = pair.loss_of_one
    names = "0.first.weight, 0.first.bias, 0.last.weight and 1 more"
    assert findings(debug, pair) == {
        (
            "suspicious",
            "held twice",
            f"Cell.optimizer.SGD and Cell.optimizer1.SGD both update {names} in one step",
        ),
        (
            "suspicious",
            "not held",
            "gradients reach the model 1 (Net), and no optimizer holds a parameter of it",
        ),
    }


def test_two_optimizers_that_update_one_net_in_turn_are_no_finding(debug):
    def step(number):
        pair.make(pair.loss_of_two, pair.of_two)
        pair.make(pair.loss_of_one, optimizers[number % 2])

    pair = Pair()
    optimizers = [pair.optimizer(pair.one), pair.optimizer(pair.one)]
    pair.step = step
    assert findings(debug, pair) == set()


def one_alone(pair):
    """Only the first net is trained, and the optimizer of the other is gone."""
    del pair.of_two
    pair.step = lambda number: pair.make(pair.loss_of_one, pair.of_one)
    pair.two.set_train(False)


def frozen(pair):
    one_alone(pair)
    pair.two.set_train(True)
    for parameter in pair.two.get_parameters():
        parameter.requires_grad = False


def test_a_net_in_training_mode_that_gradients_reach_and_no_optimizer_holds_is_named(debug):
    pair = Pair()
    pair.step = lambda number: pair.make(pair.loss_of_one, pair.of_one)
    del pair.of_two
    said = "gradients reach the model 1 (Net), and no optimizer holds a parameter of it"
    assert findings(debug, pair) == {("suspicious", "not held", said)}


@pytest.mark.parametrize("prepare", [one_alone, frozen])
def test_a_net_that_is_fixed_on_purpose_is_no_finding(debug, prepare):
    pair = Pair()
    prepare(pair)
    assert findings(debug, pair) == set()


def test_a_net_whose_optimizer_updates_in_other_steps_is_no_finding(debug):
    pair = Pair()
    pair.step = lambda number: pair.make(pair.loss_of_one, pair.of_one)
    assert findings(debug, pair) == set()


def replace(pair):
    pair.one.last = nn.Dense(4, 2)


def after(pair):
    """The layer is replaced after the optimizer was made."""
    made = pair.optimizer(pair.one), pair.optimizer(pair.two)
    replace(pair)
    return made


def test_a_layer_that_was_replaced_after_its_optimizer_was_made_is_a_fault(debug):
    pair = Pair(after)
    pair.step = lambda number: pair.make(lambda: (pair.one(pair.z) ** 2).mean(), pair.of_one)
    [fault] = [item for item in findings(debug, pair, pair.one) if item[0] == "fault"]
    assert fault == (
        "fault",
        "not held",
        "Cell.optimizer.SGD holds other parameters with the names of last.weight, last.bias, which recorded calls use "
        "and no optimizer holds: a layer was replaced after the optimizer was made",
    )


def test_a_layer_that_was_replaced_before_is_no_finding(debug):
    pair = Pair(replace)
    pair.step = lambda number: pair.make(lambda: (pair.one(pair.z) ** 2).mean(), pair.of_one)
    assert findings(debug, pair, pair.one) == set()


def test_an_older_dump_that_has_one_of_two_parameters_of_a_name_does_not_name_two_optimizers(
    tmp_path,
):
    def training(folder, is_old):
        made = Training()
        made.run["cells"] = [["0", "Net"], ["0.fc", "Dense"], ["1", "Net"], ["1.fc", "Dense"]]
        names = {"fc.weight": "0.fc"} if is_old else {"fc.weight": "0.fc", "1.fc.weight": "1.fc"}
        made.run["parameters"] = {name: made._parameter(cell) for name, cell in names.items()}
        for step in made.steps:
            step["Cell.0.fc.Dense.forward.0"] = step.pop("Cell.fc.Dense.forward.0")
            step["Cell.1.fc.Dense.forward.0"] = {
                **forward([], []),
                "parameters": {"weight": record(WEIGHT * 7)},
            }
            step["Cell.optimizer1.SGD.forward.0"] = update([GRADIENT])
        return {item.rule for item in probe.check(made.write(folder)).findings}

    assert "held twice" not in training(tmp_path / "old", is_old=True)
    assert "held twice" in training(tmp_path / "new", is_old=False)


def unknown(debug, starts, level="mix"):
    """Train with these pairs of models and work in each step; return the gaps of a check, and the findings."""
    debugger = debug(level=level, step=[0, 1, 2])
    for number in range(3):
        for models, work in starts(number):
            debugger.start(models)
            work()
            debugger.stop()
        debugger.step()
    debugger.close()
    check = probe.check(debug.dump_path)
    assert not any(
        english_left(gap.text("zh").replace("Cell", ""))
        for gap in check.unknown
        if not gap.facts.get("names")
    )
    return [str(gap) for gap in check.unknown], [
        str(item.said) for item in check.findings if item.weight != "note"
    ]


def other_model(step):
    return (
        f"cannot be known: start() was given another model in step {step}, so that parameters of one name cannot be "
        "told apart. Give all models at once: start([first, second])"
    )


def test_models_that_start_one_after_another_in_a_step_cannot_be_told_apart(debug):
    pair = Pair()

    def starts(number):
        yield pair.one, lambda: pair.make(pair.loss_of_one, pair.of_one)
        yield pair.two, lambda: pair.make(pair.loss_of_two, pair.of_two)

    assert unknown(debug, starts) == ([other_model(0)], [])
    data = json.loads((Path(debug.dump_path) / "step0" / "rank" / "dump.json").read_text())["data"]
    assert {"Cell.optimizer.SGD.forward.0", "Cell.optimizer1.SGD.forward.0"} <= data.keys()


def test_models_that_have_steps_in_turn_are_not_accused(debug):
    pair = Pair()

    def starts(number):
        net, loss, optimizer = [
            (pair.one, lambda: (pair.one(pair.z) ** 2).mean(), pair.of_one),
            (pair.two, pair.loss_of_two, pair.of_two),
        ][number % 2]
        yield net, lambda: pair.make(loss, optimizer)

    assert unknown(debug, starts) == ([other_model(1)], [])


def test_a_model_and_a_cell_around_it_are_no_other_models(debug):
    pair = Pair()
    pair.around = nn.SequentialCell(pair.one)

    def starts(number):
        yield pair.one, lambda: pair.make(lambda: (pair.one(pair.z) ** 2).mean(), pair.of_one)
        yield pair.around, lambda: pair.around(pair.z)

    assert unknown(debug, starts) == ([], [])


def outside(names):
    return (
        f"cannot be known: whether {names} are trained. Calls of Dense use them, and no model given to start() holds "
        "them. Give these Cells to start() too"
    )


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_a_net_that_start_was_not_given_is_named(debug, level):
    pair = Pair()
    loose = [pair.one]  # Cells in a plain list belong to no Cell
    loss = lambda: (pair.two(loose[0](pair.z)) ** 2).mean()  # noqa: E731
    said, found = unknown(
        debug, lambda number: [(pair.two, lambda: pair.make(loss, pair.of_two))], level
    )
    assert said == [outside("first.weight#2, first.bias#2, last.weight#2 and 1 more")]
    assert found == []


def test_a_net_outside_that_is_frozen_is_no_gap(debug):
    pair = Pair()
    pair.one.set_grad(False)
    for parameter in pair.one.get_parameters():
        parameter.requires_grad = False
    assert unknown(
        debug, lambda number: [(pair.two, lambda: pair.make(pair.loss_of_one, pair.of_two))]
    ) == ([], [])


def test_a_head_outside_that_the_optimizer_holds_is_no_gap(debug):
    pair = Pair()
    pair.one.update_parameters_name("head.")
    pair.of_two = nn.SGD([*pair.two.trainable_params(), *pair.one.trainable_params()], 0.1)
    assert unknown(
        debug, lambda number: [(pair.two, lambda: pair.make(pair.loss_of_one, pair.of_two))]
    ) == ([], [])


class Scaled(nn.Cell):
    """A Cell around a model, with a trainable parameter of its own."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.scale = ms.Parameter(ms.Tensor(8.0), name="scale")

    def construct(self, x):
        return self.net(x) * self.scale


def test_a_cell_around_the_model_is_no_cell_outside(debug):
    pair = Pair()
    around = Scaled(pair.two)
    loss = lambda: (around(pair.x) ** 2).mean()  # noqa: E731
    assert unknown(debug, lambda number: [(pair.two, lambda: pair.make(loss, pair.of_two))]) == (
        [],
        [],
    )


def test_a_net_outside_is_named_behind_many_frozen_cells(debug):
    pair = Pair()
    frozen = [nn.Dense(2, 2) for _ in range(301)]
    for parameter in (parameter for cell in frozen for parameter in cell.get_parameters()):
        parameter.requires_grad = False

    def loss():
        made = pair.one(pair.z)
        return (pair.two(made) ** 2).mean()

    def work():
        for cell in frozen:
            cell(pair.x)
        pair.make(loss, pair.of_two)

    said, _ = unknown(debug, lambda number: [(pair.two, work)], "L0")
    assert said == [outside("first.weight#2, first.bias#2, last.weight#2 and 1 more")]
