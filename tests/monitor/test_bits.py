# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The monitor changes no bit in 60 steps, in an own loop and in Model.train."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.dataset import GeneratorDataset

import probe
from probe.series.series import open_series
from tests.support import nets
from tests.support.training import bytes_of, train

pytestmark = pytest.mark.slow

STEPS = 60


@pytest.fixture
def debugger(tmp_path, debug):
    config = tmp_path / "config.json"
    monitor = {"interval": 5, "list": ["Dense"]}
    config.write_text(
        json.dumps({"task": "monitor", "dump_path": str(tmp_path / "watched"), "monitor": monitor})
    )
    return lambda: probe.PrecisionDebugger(config_path=str(config))


def model_train(debugger=None):
    ms.set_seed(1)
    random, net = np.random.default_rng(0), nets.LeNet()
    images = random.normal(size=(STEPS * 4, 1, 32, 32)).astype(np.float32)
    labels = random.integers(0, 10, STEPS * 4).astype(np.int32)
    data = GeneratorDataset(list(zip(images, labels)), ["x", "y"], shuffle=False).batch(4)
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    losses = []

    class Losses(ms.Callback):
        def on_train_step_end(self, run_context):
            losses.append(run_context.original_args().net_outputs.asnumpy().tobytes())

    callbacks = [Losses()] + ([] if debugger is None else [probe.MsprobeStep(debugger)])
    ms.Model(net, nn.CrossEntropyLoss(), optimizer).train(
        1, data, callbacks=callbacks, dataset_sink_mode=False
    )
    return [losses, bytes_of(net.get_parameters()), bytes_of(optimizer.get_parameters())]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["lenet", "gpt"])
def test_sixty_steps_of_an_own_loop_keep_their_bits(name, debugger, tmp_path):
    bare = train(nets.build(name), STEPS)
    assert train(nets.build(name), STEPS, debugger()) == bare
    (series,) = open_series(str(tmp_path / "watched"))
    assert series.steps == list(range(STEPS))


def test_sixty_steps_of_model_train_keep_their_bits(debugger, tmp_path):
    model_train()  # MindSpore chooses the threads of its CPU kernels in the first calls of a process; sums follow them
    bare = model_train()
    assert model_train(debugger()) == bare
    (series,) = open_series(str(tmp_path / "watched"))
    assert len(series.steps) == STEPS
    assert len(series["loss"].steps) == STEPS
