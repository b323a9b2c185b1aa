# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Model.train and Model.eval in GRAPH_MODE."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.dataset import GeneratorDataset

from probe import MsprobeStep
from tests.support import nets
from tests.support.agreement import differences, without_model_parameters
from tests.support.dumps import Dump
from tests.support.thorough import thorough_but

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graph_mode"), pytest.mark.thorough]

STEPS = 3


def train(callbacks, sink):
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Digits()
    batches = [(x.asnumpy(), y.asnumpy()) for x, y in nets.digits()[:STEPS]]
    data = GeneratorDataset(batches, ["image", "label"], shuffle=False)
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    model = ms.Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=sink)
    accuracy = model.eval(data, dataset_sink_mode=sink)["accuracy"]
    return accuracy, [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]


@pytest.mark.parametrize("sink", thorough_but([True], [False, True]))
def test_every_step_of_model_train_is_recorded(debug, sink):
    expected = train([], sink)
    assert train([MsprobeStep(debug(level="L0"))], sink) == expected
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [
        f"step{i}" for i in range(STEPS)
    ]
    for step in range(STEPS):
        data = debug.dump(step).data
        for cell in ("conv.Conv2d", "norm.BatchNorm2d", "out.Dense", "loss_fn.CrossEntropyLoss"):
            assert {f"Cell.{cell}.forward.0", f"Cell.{cell}.backward.0"} <= set(data)
        assert set(data["Cell.conv.Conv2d.parameters_grad.0"]) == {"weight", "bias"}
        assert not [name for name in data if name.endswith("forward.1")]


class Losses(ms.Callback):
    """Keeps the loss of every step."""

    def __init__(self):
        self.values = []

    def step_end(self, run_context):
        self.values.append(float(run_context.original_args().net_outputs.asnumpy()))


def batches(name):
    """Return three batches as arrays."""
    if name == "digits":
        return [(x.asnumpy(), y.asnumpy()) for x, y in nets.digits()[:STEPS]]
    rng = np.random.RandomState(0)
    if name == "lenet":
        images = rng.randn(STEPS, 4, 1, 32, 32).astype(np.float32)
        return list(zip(images, rng.randint(0, 10, (STEPS, 4)).astype(np.int32)))
    tokens = rng.randint(0, 64, (STEPS, 4, 16)).astype(np.int32)
    return list(zip(tokens, rng.randint(0, 10, (STEPS, 64)).astype(np.int32)))


def fit(name, callbacks=()):
    """Train a net with Model.train for three steps; return the losses and the bytes of its parameters."""
    net, _ = nets.build(name)
    data = GeneratorDataset(batches(name), ["x", "y"], shuffle=False)
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    losses = Losses()
    model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
    model.train(1, data, callbacks=[losses, *callbacks], dataset_sink_mode=False)
    return losses.values, [parameter.asnumpy().tobytes() for parameter in net.get_parameters()]


@pytest.mark.parametrize("name", thorough_but(["digits"], ["lenet", "digits", "gpt"]))
def test_model_train_has_the_cells_of_pynative(debug, name, tmp_path):
    expected = fit(name)
    assert fit(name, [MsprobeStep(debug(level="L0", step=[1]))]) == expected
    assert [path.name for path in debug.dump_path.iterdir()] == ["step1"]
    ms.set_context(mode=ms.PYNATIVE_MODE)
    cells_alone = {"level": "L0", "step": [1], "optimizer": "off"}  # a graph shows no update
    losses, _ = fit(name, [MsprobeStep(debug(**cells_alone, dump_path=str(tmp_path / "pynative")))])
    np.testing.assert_allclose(expected[0], losses, rtol=1e-6)
    graph, other = debug.dump(1), Dump(tmp_path / "pynative" / "step1" / "rank")
    assert set(graph.data) == set(other.data)
    assert graph.construct == other.construct
    assert differences(graph.data, without_model_parameters(other.data), 1e-5, floor=1e-8) == []
