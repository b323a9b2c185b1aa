# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The arguments of functions that are differentiated are in run.jsonl: labels, masks and numbers."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.dataset import GeneratorDataset

import probe
from probe.capture.pynative.gradient_functions import name_of, names_of

pytestmark = pytest.mark.medium

IMAGES = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def batch(step=0):
    rng = np.random.default_rng(step)
    return Tensor(rng.normal(size=(4, 3)).astype(np.float32)), Tensor(np.arange(4) % 2, ms.int32)


def calls_of(folder):
    """Return the lines of run.jsonl that have arguments."""
    [file] = folder.rglob("run.jsonl")
    lines = map(json.loads, file.read_text().splitlines())
    return [line for line in lines if "arguments" in line]


def record(debugger, net, step):
    debugger.start(net)
    step()
    debugger.stop()
    debugger.step()


def loss_of(net):
    def loss(images, labels, weight=1.0):
        return ops.cross_entropy(net(images), labels) * weight

    return loss


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
@pytest.mark.parametrize("task", ["statistics", "tensor", "structure"])
def test_each_argument_is_noted_with_its_name_and_checksum(debug, level, task):
    net = nn.Dense(3, 2)
    gradient = ms.value_and_grad(loss_of(net), None, net.trainable_params())
    record(debug(level=level, task=task), net, lambda: gradient(*batch(), 0.5))
    [line] = calls_of(debug.dump_path)
    assert (line["step"], line["function"]) == (0, "loss")
    assert line["names"] == ["images", "labels", "weight"]
    assert line["arguments"]["1"]["shape"] == [4]
    assert len(line["arguments"]["1"]["crc"]) == 8
    assert line["arguments"]["2"] == 0.5


def test_arguments_in_a_dictionary_and_by_name_are_noted(debug):
    net = nn.Dense(3, 2)

    def loss(given, *, factor):
        return ops.cross_entropy(net(given["images"]), given["labels"]) * factor

    gradient = ops.GradOperation(get_by_list=True)(loss, ms.ParameterTuple(net.trainable_params()))
    images, labels = batch()
    given = {"images": images, "labels": labels}
    record(debug(), net, lambda: gradient(given, factor=2.0))
    [line] = calls_of(debug.dump_path)
    assert line["arguments"]["0"]["labels"]["dtype"] == "Int32"
    assert line["arguments"]["factor"] == 2.0


def test_a_cell_that_computes_the_loss_is_noted_and_the_model_itself_is_not(debug):
    net = nn.Dense(3, 2)
    with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    of_cell = ms.value_and_grad(with_loss, None, net.trainable_params())
    of_model = ms.grad(net, None, net.trainable_params())
    images, labels = batch()

    def step():
        of_cell(images, labels)
        of_model(images)

    record(debug(), net, step)
    lines = calls_of(debug.dump_path)
    assert [line["function"] for line in lines] == ["WithLossCell"]
    assert list(lines[0]["arguments"]) == ["0", "1"]


def test_a_gradient_inside_of_a_recorded_cell_is_no_batch(debug):
    class Slope(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = nn.Dense(3, 1)
            self.slope = ms.grad(lambda x: self.inner(x).sum())

        def construct(self, x):
            return self.slope(x) ** 2

    net = Slope()
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    record(debug(level="mix"), net, lambda: gradient(batch()[0]))
    assert [line["function"] for line in calls_of(debug.dump_path)] == ["<lambda>"]


def test_no_more_than_sixteen_functions_of_a_step_are_noted(debug):
    net = nn.Dense(3, 2)
    gradient = ms.value_and_grad(loss_of(net), None, net.trainable_params())
    record(debug(), net, lambda: [gradient(*batch(number)) for number in range(20)])
    assert len(calls_of(debug.dump_path)) == 16


def test_other_labels_of_model_train_are_named(tmp_path, debug):
    for name, moved in (("a", 0), ("b", 1), ("c", 0)):
        ms.set_seed(1)
        net = nn.Dense(3, 2)
        model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net.trainable_params()))
        rows = [(image, np.int32((number + moved) % 2)) for number, image in enumerate(IMAGES)]
        data = GeneratorDataset(rows, ["image", "label"], shuffle=False).batch(4)
        callback = probe.MsprobeStep(debug(level="mix", dump_path=str(tmp_path / name)))
        model.train(1, data, callbacks=[callback], dataset_sink_mode=False)
    found = probe.check(tmp_path / "a", tmp_path / "b")
    assert str(found.differences[0]).startswith("data: step 0, input 1 of WithLossCell")
    assert probe.check(tmp_path / "a", tmp_path / "c").ok


def test_names_are_those_of_the_code():
    class Bound:
        def method(self, x, y):
            return x + y

    assert names_of(Bound().method) == ("x", "y")
    assert names_of(nn.Dense(1, 1)) == ()
    assert (name_of(Bound().method), name_of(nn.Dense(1, 1))) == ("method", "Dense")


def test_a_parameter_that_is_an_argument_is_no_batch(debug):
    net = nn.Dense(3, 2)
    gradient = ms.value_and_grad(lambda weight, x: (x @ weight.T).sum(), 0)
    record(debug(), net, lambda: gradient(net.weight, batch()[0]))
    [line] = calls_of(debug.dump_path)
    assert line["arguments"]["0"] == f"parameter {net.weight.name}"
