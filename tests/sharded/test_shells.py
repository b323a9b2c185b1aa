# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Shells are measured by their local tensors, and never asked for an operation."""

from __future__ import annotations

import gc
import itertools
import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn

from probe.measure.tensor_reader import may_be_shell
from tests.sharded.rig import DTensor, Mesh, Partial, Replicate, Shard
from tests.support.thorough import thorough_but

pytestmark = [
    pytest.mark.medium,
    pytest.mark.skipif(
        not hasattr(Tensor, "_make_subclass"), reason="this MindSpore has no subclasses of Tensor"
    ),
]
MESH = {"mesh": {"dp": 1, "tp": 2}, "coordinate": [0, 1]}
MODES = [
    (task, measure)
    for task in ("statistics", "tensor", "nan_check")
    for measure in ("host", "device")
]


@pytest.fixture(autouse=True)
def asked():
    DTensor.refused.clear()
    DTensor.communicated.clear()
    yield
    assert DTensor.communicated == []


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


class Net(nn.Cell):
    """A layer whose weight is split by its rows, on rank 1 of two."""

    def __init__(self, mesh):
        super().__init__()
        weight = DTensor(Tensor(numbers(3, 400)), mesh, [Replicate(), Shard(0)])
        self.weight = Parameter(weight, name="weight")

    def construct(self, x):
        return mint.nn.functional.relu(mint.nn.functional.linear(x, self.weight))


class Outer(nn.Cell):
    def __init__(self, mesh):
        super().__init__()
        self.layer = Net(mesh)

    def construct(self, x):
        return self.layer(x)


def train(around=lambda model: None, after=lambda: None, steps=1):
    """Return the bits of some steps."""
    mesh = Mesh(1, dp=1, tp=2)
    model = Outer(mesh)
    found = []

    def forward(x):
        return model(x)._local_tensor.sum()

    differentiate = ms.value_and_grad(forward, None, model.trainable_params())
    for step in range(steps):
        around(model)
        x = DTensor(Tensor(numbers(2, 400, seed=step)), mesh, [Shard(0), Replicate()])
        loss, gradients = differentiate(x)
        after()
        found += [loss.asnumpy(), *(gradient.asnumpy() for gradient in gradients)]
    return found


def recorded(debug, steps=1, **settings):
    debugger = debug(**settings)

    def after():
        debugger.stop()
        debugger.step()

    return train(debugger.start, after, steps)


@pytest.mark.parametrize(("task", "measure"), MODES)
def test_a_training_with_shells_is_the_same_and_complete(debug, task, measure):
    bare, refused = train(), list(DTensor.refused)
    watched = recorded(debug, task=task, measure=measure, level="mix")
    for ours, theirs in zip(watched, bare):
        np.testing.assert_array_equal(ours, theirs)
    assert DTensor.refused == refused * 2


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_record_is_that_of_the_local_tensor_with_the_layout(debug, measure):
    recorded(debug, task="tensor", measure=measure, level="mix")
    dump = debug.dump()
    entry = dump.data["Cell.layer.Net.forward.0"]
    (given,) = entry["input_args"]
    assert given["shape"] == [2, 400]
    assert given["layout"] == {**MESH, "placements": ["Shard(0)", "Replicate"], "shape": [2, 400]}
    np.testing.assert_array_equal(dump.array(given["data_name"]), numbers(2, 400))
    weight = entry["parameters"]["weight"]
    assert weight["layout"] == {**MESH, "placements": ["Replicate", "Shard(0)"], "shape": [6, 400]}
    np.testing.assert_array_equal(dump.array(weight["data_name"]), numbers(3, 400))
    assert "layout" in entry["output"][0]
    assert "error" not in str(dump.data)
    functional = dump.names("Functional", "forward") + dump.names("Mint", "forward")
    assert functional and all(
        dump.data[name]["input_args"][0]["Max"] is not None for name in functional
    )
    assert dump.data["Cell.layer.Net.parameters_grad.0"]["weight"][0]["shape"] == [3, 400]
    assert "Cell.layer.Net.backward.0" in dump.data


def test_a_term_of_a_sum_says_so(debug):
    debugger = debug(level="debug")
    shell = DTensor(Tensor(numbers(2, 3)), Mesh(0, tp=4), [Partial()])
    debugger.save(shell, "term")
    debugger.step()
    text = (debug.dump_path / "step0" / "rank" / "debug.json").read_text()
    assert '"placements": ["Partial(sum)"]' in text


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_monitor_and_the_snapshot_read_shells(debug, measure):
    watched = recorded(debug, steps=3, task="monitor", measure=measure)
    assert len(watched) == 6
    assert not list(debug.path.rglob("dump_error_info.log"))


@pytest.mark.parametrize(
    ("steps", "measure"),
    thorough_but([(8, "device")], [(8, "device"), (200, "host"), (200, "device")]),
)
def test_no_tensor_is_left_after_a_step(debug, steps, measure):
    debugger = debug(level="mix", measure=measure)
    ended, counts = itertools.count(1), []

    def after():
        debugger.stop()
        debugger.step()
        if next(ended) in (3, steps):
            gc.collect()
            counts.append(sum(issubclass(type(item), Tensor) for item in gc.get_objects()))

    train(debugger.start, after, steps)
    early, late = counts
    assert late <= early


class Optimizer(nn.Optimizer):
    """Updates nothing: libraries of shells have optimizers of their own."""

    def construct(self, gradients):
        return True


@pytest.mark.parametrize("measure", ["host", "device"])
def test_an_update_with_shells(debug, measure):
    mesh = Mesh(1, dp=1, tp=2)
    model = Outer(mesh)
    optimizer = Optimizer(0.1, model.trainable_params())
    debugger = debug(level="L0", measure=measure, optimizer="states")
    debugger.start(model)
    optimizer([DTensor(Tensor(numbers(3, 400)), mesh, [Partial(), Shard(0)])])
    debugger.stop()
    debugger.step()
    entry = debug.dump().data["Cell.optimizer.Optimizer.forward.0"]
    ((given,),) = entry["input_args"]
    assert given["Max"] == numbers(3, 400).max()
    assert given["layout"]["placements"] == ["Partial(sum)", "Shard(0)"]
    (after,) = entry["output"]
    assert [record["layout"]["shape"] for record in after.values()] == [[6, 400]]


class Refusing(Tensor):
    """A shell without a local tensor: it holds its values itself, and refuses every operation."""

    def __fallback__(self, function, args=(), kwargs=None):
        raise RuntimeError(f"{function.name} is refused")


@pytest.mark.parametrize("measure", ["host", "device"])
def test_a_shell_without_a_local_tensor(debug, measure):
    debugger = debug(level="debug", measure=measure)
    debugger.save(Tensor._make_subclass(Refusing, Tensor(numbers(3, 400))), "value")
    debugger.step()
    record = json.loads((debug.dump_path / "step0" / "rank" / "debug.json").read_text())["data"][
        "value.0.debug"
    ]
    assert record["Max"] == numbers(3, 400).max() and record["layout"]["shape"] == [3, 400]


def test_ordinary_tensors_are_known_by_their_class():
    assert not may_be_shell(Tensor) and not may_be_shell(type(Parameter(Tensor([1.0]), name="p")))
    assert may_be_shell(DTensor)
