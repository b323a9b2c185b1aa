# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""probe check of one run: each rule names its place in small dumps, and near misses say nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

import probe
from probe.__main__ import main
from tests.reading.builders import forward, record, tensor, value, write
from tests.support.chinese import english_left

RNG = np.random.RandomState(0)
X, LOGITS, LABELS = (RNG.randn(*shape).astype(np.float32) for shape in ((8, 4), (8, 3), (8,)))
WEIGHT = RNG.randn(3, 4).astype(np.float32)
ZEROS = record(np.zeros((3, 4), np.float32))
GRADIENT = record(WEIGHT * 0.1)
FRAME = "File /me/train.py, line 7, in construct, \n y = self.fc(x)"


def update(gradients, rate=0.01, names=("fc.weight",), **numbers):
    """Return the entry of an update of SGD."""
    numbers = {
        key: value(item)
        for key, item in {"learning_rate": rate, "momentum": 0.0, **numbers}.items()
    }
    return forward([list(gradients)], [], **numbers, parameters=[value(name) for name in names])


def scalar(number):
    return record(np.array(number, np.float32))


def labels(numbers):
    numbers = list(numbers)
    return {
        **tensor(shape=[len(numbers)], Max=max(numbers), Min=min(numbers), norm=3.0),
        "dtype": "Int32",
    }


class Training:
    """A training of one Dense and a cross entropy, as a dump has it; a test changes entries."""

    def __init__(self, steps=3):
        self.steps = [self._step(step) for step in range(steps)]
        self.run = {
            "tool": "probe",
            "rank": None,
            "first_step": 0,
            "cells": [["", "Net"], ["fc", "Dense"], ["drop", "Dropout"]],
            "cell_values": {"drop": {"p": 0.5}},
            "parameters": {"fc.weight": self._parameter("fc")},
        }
        self.lines = []

    def _parameter(self, cell, trainable=True):
        return {
            "cell": cell,
            "trainable": trainable,
            "values": {"dtype": "Float32", "shape": [3, 4], "crc": "0"},
        }

    def _step(self, step):
        weight, x, logits = (
            record(WEIGHT * (1 + step / 1000)),
            record(X + step),
            record(LOGITS * (1 + step)),
        )
        loss = scalar(1.5 - step / 10)
        return {
            "Functional.matmul.0.forward": forward([x, weight], [logits]),
            "Cell.fc.Dense.forward.0": {**forward([x], [logits]), "parameters": {"weight": weight}},
            "Functional.cross_entropy.0.forward": forward([logits, labels(range(3))], [loss]),
            "Functional.cross_entropy.0.backward": {
                "input": [scalar(1.0)],
                "output": [record(LOGITS * 0.1), None],
            },
            "Functional.matmul.0.backward": {
                "input": [record(LOGITS * 0.1)],
                "output": [None, GRADIENT],
            },
            "Cell.fc.Dense.parameters_grad.0": {"weight": [GRADIENT]},
            "Cell.optimizer.SGD.forward.0": update([GRADIENT]),
        }

    def each(self, **entries):
        """Replace entries in each step; the names have two underlines in place of dots."""
        for step in self.steps:
            step.update({name.replace("__", "."): entry for name, entry in entries.items()})
        return self

    def write(self, folder):
        for number, data in enumerate(self.steps):
            rank = folder / f"step{number}" / "rank"
            construct = dict.fromkeys(
                (name for name in data if "matmul" in name), "Cell.fc.Dense.forward.0"
            )
            write(rank, data, {name: [FRAME] for name in data}, construct)
            if number == 0:
                (rank / "run.json").write_text(json.dumps(self.run))
                (rank / "run.jsonl").write_text(
                    "".join(f"{json.dumps(line)}\n" for line in self.lines)
                )
        return str(folder)

    def said(self, folder):
        return [str(item.whole) for item in probe.check(self.write(folder)).findings]


def test_a_healthy_run_is_silent(tmp_path, capsys):
    path = Training().write(tmp_path)
    assert probe.check(path).findings == []
    assert main(["check", path, "--lang", "en"]) == 0
    assert capsys.readouterr().out.startswith(
        "no fault is seen in steps 0-2: 9 forward and 9 backward entries\n"
    )


def zero_gradient(training):
    backward = {"input": [record(LOGITS * 0.1)], "output": [None, ZEROS]}
    training.each(
        Functional__matmul__0__backward=backward,
        Cell__fc__Dense__parameters_grad__0={"weight": [ZEROS]},
        Cell__optimizer__SGD__forward__0=update([ZEROS, GRADIENT], names=("fc.weight", "other")),
    )


def stop_gradient(training):
    zero_gradient(training)
    for step in training.steps:
        data = dict(step)
        logits = data["Functional.matmul.0.forward"]["output"][0]
        step.clear()
        for name, entry in data.items():
            if name == "Functional.cross_entropy.0.forward":
                step["Functional.stop_gradient.0.forward"] = forward([logits], [logits])
            if name != "Functional.matmul.0.backward":
                step[name] = entry


def stop_gradient_of_a_gan(training):
    """The discriminator's pass uses the generator too, and stops its gradient on purpose."""
    stop_gradient(training)
    for step in training.steps:
        data = dict(step)
        weight = data["Functional.matmul.0.forward"]["input_args"][1]
        made = [record(LOGITS + 7)]
        step.clear()
        step["Functional.matmul.1.forward"] = forward([record(X * 3), weight], made)
        step["Functional.stop_gradient.1.forward"] = forward(made, made)
        step.update(data)


def stop_gradient_of_a_gan_that_trains_its_generator_first(training):
    stop_gradient(training)
    for step in training.steps:
        weight = step["Functional.matmul.0.forward"]["input_args"][1]
        made = [record(LOGITS + 7)]
        step["Functional.matmul.1.forward"] = forward([record(X * 3), weight], made)
        step["Functional.stop_gradient.1.forward"] = forward(made, made)


def not_held(training):
    training.run["parameters"]["out.weight"] = training._parameter("out")
    training.run["cells"].append(["out", "Dense"])
    for step in training.steps:
        weight = record(WEIGHT * 7)
        step["Cell.out.Dense.forward.0"] = {**forward([], []), "parameters": {"weight": weight}}
        step["Cell.out.Dense.parameters_grad.0"] = {"weight": [GRADIENT]}


def unused(training):
    given = update([GRADIENT, ZEROS], names=("fc.weight", "extra.weight"))
    training.each(Cell__optimizer__SGD__forward__0=given)


def left_as_it_is(training):
    weight = record(WEIGHT)
    for step in training.steps:
        step["Functional.matmul.0.forward"]["input_args"][1] = weight
        step["Cell.fc.Dense.forward.0"]["parameters"]["weight"] = weight


def no_update(training):
    left_as_it_is(training)
    for step in training.steps:
        del step["Cell.optimizer.SGD.forward.0"]


def never_training(training):
    training.lines.append({"step": 0, "inputs": {}, "evaluating": ["", "fc", "drop"]})


def no_return(training):
    training.lines.append({"step": 1, "inputs": {}, "evaluating": ["", "fc", "drop"]})


def dropout_off(training):
    training.lines.append({"step": 0, "inputs": {}, "evaluating": ["drop"]})
    training.run["parameters"]["drop.weight"] = training._parameter("drop")
    given = update([GRADIENT, GRADIENT], names=("fc.weight", "drop.weight"))
    training.each(Cell__optimizer__SGD__forward__0=given)


def frozen_backbone(training, trainable=False):
    """Add a Cell of a Dense and a BatchNorm; the optimizer does not hold it."""
    training.run["cells"] += [
        ["back", "Backbone"],
        ["back.fc", "Dense"],
        ["back.norm", "BatchNorm2d"],
    ]
    parts = {"back.fc.weight": "back.fc", "back.norm.gamma": "back.norm"}
    for name, cell in parts.items():
        training.run["parameters"][name] = training._parameter(cell, trainable)
    training.run["parameters"]["back.norm.moving_mean"] = training._parameter("back.norm", False)


def entropy(training, **places):
    for step in training.steps:
        arguments = step["Functional.cross_entropy.0.forward"]["input_args"]
        arguments[:] = [places.get("logits", arguments[0]), places.get("labels", arguments[1])]


def softmax_before(training):
    shares = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    entropy(training, logits=record(shares))


def all_ignored(training):
    entropy(training, labels=labels([-100, -100]))


def label_too_large(training):
    entropy(training, labels=labels([0, 3]))


def loss_of_zero(training):
    for step in training.steps:
        step["Functional.cross_entropy.0.forward"]["output"] = [scalar(0.0)]


def loss_of_one_number(training):
    for number, step in enumerate(training.steps):
        step["Functional.cross_entropy.0.forward"]["output"] = [scalar(1.25)]
        training.lines.append(
            {
                "step": number,
                "inputs": {"0": {"dtype": "Float32", "shape": [8], "crc": str(number)}},
            }
        )


def broadcast(training):
    left, right, made = (
        tensor(shape=[8, 1], norm=3.0),
        tensor(shape=[8], norm=4.0),
        tensor(shape=[8, 8], norm=5.0),
    )
    for step in training.steps:
        step["Tensor.__sub__.0.forward"] = forward([left, right], [made])
        step["Functional.mean.0.forward"] = forward([made], [scalar(3.0)])


def scale_kept(training):
    for number, step in enumerate(training.steps):
        loss = step["Functional.cross_entropy.0.forward"]["output"][0]
        data = dict(step)
        step.clear()
        for name, entry in data.items():
            if name == "Functional.cross_entropy.0.backward":
                step["Tensor.__mul__.0.forward"] = forward(
                    [loss, value(1024.0)], [scalar(1500.0 + number)]
                )
                step["Tensor.__mul__.0.backward"] = {
                    "input": [scalar(1.0)],
                    "output": [scalar(1024.0)],
                }
            step[name] = entry
        other = record(WEIGHT[:, :2])
        step["Cell.fc.Dense.parameters_grad.0"]["bias"] = [other]
        step["Cell.optimizer.SGD.forward.0"] = update(
            [GRADIENT, other], names=("fc.weight", "fc.bias")
        )


def half_epsilon(training):
    half = {**tensor(norm=3.0), "dtype": "Float16"}
    for step in training.steps:
        step["Tensor.__add__.0.forward"] = forward([half, value(1e-8)], [{**half, "Norm": 4.0}])


def without_effect(training):
    for step in training.steps:
        logits = step["Functional.cross_entropy.0.forward"]["input_args"][0]
        data = dict(step)
        step.clear()
        for name, entry in data.items():
            if name == "Functional.cross_entropy.0.forward":
                step["Tensor.add_.0.forward"] = forward([logits, value(1.0)], [record(LOGITS + 9)])
            step[name] = entry


def changed_between(training):
    training.steps[1]["Cell.fc.Dense.forward.0"]["parameters"]["weight"] = record(WEIGHT * 3)


def lost_in_16_bits(training):
    for step in training.steps:
        weight = {**step["Cell.fc.Dense.forward.0"]["parameters"]["weight"], "dtype": "Float16"}
        step["Cell.fc.Dense.forward.0"]["parameters"]["weight"] = weight
        step["Functional.matmul.0.forward"]["input_args"][1] = weight
    training.each(Cell__optimizer__SGD__forward__0=update([GRADIENT], rate=1e-5))


AT = " (/me/train.py:7)"
FAULTS = {
    stop_gradient_of_a_gan_that_trains_its_generator_first: "fault: the gradient ends at "
    f"Functional.stop_gradient.0.forward, which passes none; no gradient for fc.weight{AT}",
    stop_gradient_of_a_gan: f"fault: the gradient ends at Functional.stop_gradient.0.forward, which passes none; "
    f"no gradient for fc.weight{AT}",
    stop_gradient: f"fault: the gradient ends at Functional.stop_gradient.0.forward, which passes none; "
    f"no gradient for fc.weight{AT}",
    zero_gradient: f"fault: the backward of Functional.matmul.0.forward gives zeros; no gradient for fc.weight, "
    f"in fc.Dense{AT}",
    not_held: "fault: gradients are computed for out.weight, which no optimizer of these steps holds",
    unused: "suspicious: Cell.optimizer.SGD.forward.0 holds extra.weight, which no recorded call uses",
    left_as_it_is: "fault: no update changes a parameter: fc.weight",
    no_update: "suspicious: gradients are computed in 3 steps, and no optimizer runs: no parameter changes",
    never_training: "fault: Net is not in training mode, and an optimizer runs; the mode changes drop",
    no_return: "fault: Net is no longer in training mode from step 1 on, as after an evaluation; "
    "the mode changes drop",
    dropout_off: "suspicious: drop (Dropout) is not in training mode, the model is; the mode changes drop",
    softmax_before: f"fault: Functional.cross_entropy.0.forward is given probabilities, as after a softmax, "
    f"where logits belong{AT}",
    all_ignored: f"fault: all 2 labels of Functional.cross_entropy.0.forward are ignore_index (-100){AT}",
    label_too_large: f"fault: Functional.cross_entropy.0.forward is given the label 3, and there are 3 classes{AT}",
    loss_of_zero: f"fault: the loss is 0 in 3 steps: Functional.cross_entropy.0.forward{AT}",
    loss_of_one_number: f"fault: the loss is 1.25 in 3 steps with other batches: "
    f"Functional.cross_entropy.0.forward{AT}",
    broadcast: f"fault: Tensor.__sub__.0.forward broadcasts (8, 1) and (8,) to 8 x 8{AT}",
    scale_kept: f"fault: the loss is multiplied by 1024 in Tensor.__mul__.0.forward, and Cell.optimizer.SGD.forward.0 "
    f"is given gradients with this factor{AT}",
    half_epsilon: f"suspicious: 1e-08 of Tensor.__add__.0.forward is zero in Float16{AT}",
    without_effect: f"fault: Tensor.add_.0.forward returns another result and leaves its input as it was; "
    f"Functional.cross_entropy.0.forward uses the input, no call the result{AT}",
    changed_between: "suspicious: fc.weight changed more from step 0 to the next than the update can do",
    lost_in_16_bits: "suspicious: the update of fc.weight is too small for 16 bits",
}


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_each_fault_is_named_first(tmp_path, capsys, change):
    training = Training()
    change(training)
    assert training.said(tmp_path)[0] == FAULTS[change]
    assert main(["check", str(tmp_path), "--lang", "zh"]) == FAULTS[change].startswith("fault")
    assert english_left(capsys.readouterr().out.split("\n")[0]) == []


def test_a_frozen_cell_whose_norm_goes_on_to_learn_is_a_note(tmp_path):
    told = "back (Backbone) is frozen, and in training mode: the moving statistics of back.norm"
    for number, (trainable, evaluating, expected) in enumerate(
        [(False, [], 1), (True, [], 0), (False, ["back", "back.fc", "back.norm"], 0)]
    ):
        training = Training()
        frozen_backbone(training, trainable)
        training.lines.append({"step": 0, "inputs": {}, "evaluating": evaluating})
        folder = tmp_path / str(number)
        training.write(folder)
        found = [item for item in probe.check(folder).findings if told in str(item.whole)]
        assert [item.weight for item in found] == ["note"] * expected


@pytest.mark.parametrize(("last", "expected"), [("student", []), ("teacher", [2])])
def test_a_model_may_leave_training_mode_in_steps_that_do_not_train_it(tmp_path, last, expected):
    training = Training()
    models = ("teacher", "student")
    training.run["cells"] = [
        [f"{place}{path}", kind]
        for place, name in enumerate(models)
        for path, kind in (("", name.title()), (".fc", "Dense"), (".drop", "Dropout"))
    ]
    training.run["parameters"] = {
        f"{place}.fc.weight": training._parameter(f"{place}.fc") for place in range(2)
    }
    training.run["cell_values"] = {f"{place}.drop": {"p": 0.5} for place in range(2)}
    for step, name in zip(training.steps, ("teacher", "student", last)):
        names = (f"{models.index(name)}.fc.weight",)
        step["Cell.optimizer.SGD.forward.0"] = update([GRADIENT], names=names)
    training.lines.append({"step": 1, "inputs": {}, "evaluating": ["0", "0.fc", "0.drop"]})
    found = probe.check(training.write(tmp_path)).findings
    assert [item.step for item in found if "training mode" in str(item.whole)] == expected


def frozen(training):
    never_training(training)
    left_as_it_is(training)
    training.run["parameters"]["fc.weight"]["trainable"] = False
    training.each(Cell__optimizer__SGD__forward__0=update([GRADIENT], names=("head.weight",)))


def dropout_of_zero(training):
    never_training(training)
    training.run["cell_values"]["drop"]["p"] = 0.0


def warm_up(training):
    left_as_it_is(training)
    training.steps[:] = training.steps[:2]
    training.steps[0]["Cell.optimizer.SGD.forward.0"] = update([GRADIENT], rate=0.0)


def zero_in_the_first_step(training):
    zero_gradient(training)
    training.steps[1:] = Training().steps[1:]
    for entry, part in (
        ("Cell.fc.Dense.forward.0", "parameters"),
        ("Functional.matmul.0.forward", "input_args"),
    ):
        training.steps[0][entry][part] = training.steps[1][entry][part]


def sigmoid_of_targets(training):
    left, right, made = (
        tensor(shape=[8, 1], norm=3.0),
        tensor(shape=[8], norm=4.0),
        tensor(shape=[8, 8], norm=5.0),
    )
    for step in training.steps:  # distances of all pairs: nothing reduces them to the loss
        step["Tensor.__sub__.0.forward"] = forward([left, right], [made])


def scale_taken_out(training):
    scale_kept(training)
    small, other = record(WEIGHT * 0.1 / 1024), record(WEIGHT[:, :2] / 1024)
    given = update([small, other], rate=10.0, names=("fc.weight", "fc.bias"))
    training.each(Cell__optimizer__SGD__forward__0=given)


def skipped_overflow(training):
    training.steps[1]["Functional.matmul.0.backward"]["output"][1] = {
        **GRADIENT,
        "Max": float("inf"),
        "inf_count": 1,
    }
    del training.steps[1]["Cell.optimizer.SGD.forward.0"]


HEALTHY = (
    frozen,
    dropout_of_zero,
    warm_up,
    zero_in_the_first_step,
    sigmoid_of_targets,
    scale_taken_out,
    skipped_overflow,
)


@pytest.mark.parametrize("change", HEALTHY, ids=lambda change: change.__name__)
def test_near_misses_are_neither_faults_nor_suspicious(tmp_path, change):
    training = Training()
    change(training)
    assert [line for line in training.said(tmp_path) if not line.startswith("note")] == []


def test_a_run_without_a_snapshot_is_looked_at_too(tmp_path):
    training = Training()
    left_as_it_is(training)
    path = training.write(tmp_path)
    (tmp_path / "step0" / "rank" / "run.json").unlink()
    assert [item.rule for item in probe.check(path).findings] == ["not updated"]


def test_json_has_the_findings_with_their_facts(tmp_path, capsys):
    training = Training()
    all_ignored(training)
    assert main(["check", training.write(tmp_path), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    (finding,) = answer["findings"]
    assert (finding["weight"], finding["rule"], finding["line"]) == ("fault", "loss", 7)
    assert finding["facts"]["value"] == -100
    assert answer["runs"][0]["run"]["first_step"] == 0


def test_a_step_that_cannot_be_read_is_told(tmp_path, capsys):
    path = Training().write(tmp_path)
    (tmp_path / "step1" / "rank" / "dump.json").write_text("{")
    assert main(["check", path, "--lang", "en"]) == 2
    assert "cannot be read" in capsys.readouterr().out
