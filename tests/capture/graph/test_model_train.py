# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Model.train and Model.eval in GRAPH_MODE."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.dataset import GeneratorDataset

from probe import MsprobeStep
from tests.support import nets

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("graph_mode")]

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


@pytest.mark.parametrize("sink", [False, True])
def test_every_step_of_model_train_is_recorded(debug, sink):
    expected = train([], sink)
    assert train([MsprobeStep(debug(level="L0"))], sink) == expected
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [f"step{i}" for i in range(STEPS)]
    for step in range(STEPS):
        data = debug.dump(step).data
        for cell in ("conv.Conv2d", "norm.BatchNorm2d", "out.Dense", "loss_fn.CrossEntropyLoss"):
            assert {f"Cell.{cell}.forward.0", f"Cell.{cell}.backward.0"} <= set(data)
        assert set(data["Cell.conv.Conv2d.parameters_grad.0"]) == {"weight", "bias"}
        assert not [name for name in data if name.endswith("forward.1")]
