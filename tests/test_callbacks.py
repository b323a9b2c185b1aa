# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Model.train with MsprobeStep."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.dataset import GeneratorDataset

from probe import MsprobeInitStep, MsprobeStep, UsageError
from tests.support import nets

pytestmark = pytest.mark.slow

STEPS = 3


def train(callbacks, sink, done=0):
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Digits()
    batches = [(x.asnumpy(), y.asnumpy()) for x, y in nets.digits()[:STEPS]]
    data = GeneratorDataset(batches, ["image", "label"], shuffle=False)
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    optimizer.global_step.set_data(ms.Tensor([done], ms.int32))
    model = ms.Model(net, nn.CrossEntropyLoss(), optimizer)
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=sink)
    return net


@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_every_step_has_its_folder_with_all_kinds_of_entries(debug, level, sink):
    bare = train([], sink)
    watched = train([MsprobeStep(debug(level=level))], sink)
    for ours, theirs in zip(watched.get_parameters(), bare.get_parameters()):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [
        f"step{i}" for i in range(STEPS)
    ]
    for step in range(STEPS):
        data = debug.dump(step).data
        if level != "L1":
            assert "Cell.conv.Conv2d.forward.0" in data and "Cell.conv.Conv2d.backward.0" in data
            assert set(data["Cell.conv.Conv2d.forward.0"]["parameters"]) == {"weight", "bias"}
            assert set(data["Cell.conv.Conv2d.parameters_grad.0"]) == {"weight", "bias"}
        if level != "L0":
            assert "Functional.relu.0.forward" in data and "Functional.relu.0.backward" in data
            assert (
                "Primitive.conv2d.Conv2D.0.forward" in data
                and "Primitive.conv2d.Conv2D.0.backward" in data
            )
            assert [
                name for name in data if "cross_entropy" in name and name.endswith(".0.forward")
            ]
        if level != "L1":
            assert (
                "Cell.loss_fn.CrossEntropyLoss.forward.0" in data
                and "Cell.loss_fn.CrossEntropyLoss.backward.0" in data
            )
        assert not [name for name in data if "Functional.relu.1" in name]


def test_the_steps_of_a_resumed_training_have_its_numbers(debug):
    train([MsprobeInitStep(), MsprobeStep(debug(level="L0"))], sink=False, done=7)
    assert sorted(path.name for path in debug.dump_path.iterdir()) == [
        f"step{7 + i}" for i in range(STEPS)
    ]


def test_the_model_given_to_start_is_the_one_recorded(debug):
    debugger = debug(level="L0")
    inner = nn.SequentialCell(nets.Digits())
    debugger.start(inner)
    inner(nets.digits()[0][0])  # belongs to no step
    train_inner(inner, MsprobeStep(debugger))
    data = debug.dump(0).data
    assert "Cell.0.conv.Conv2d.forward.0" in data
    assert not [name for name in data if name.endswith("forward.1")]


def train_inner(inner, callback):
    batches = [(x.asnumpy(), y.asnumpy()) for x, y in nets.digits()[:1]]
    data = GeneratorDataset(batches, ["image", "label"], shuffle=False)
    outer = nn.SequentialCell(inner)
    model = ms.Model(outer, nn.CrossEntropyLoss(), nn.Adam(outer.trainable_params(), 1e-2))
    model.train(1, data, callbacks=[callback], dataset_sink_mode=False)


class LossWithLayers(nn.LossBase):
    def __init__(self):
        super().__init__()
        self.inner = nn.MSELoss()

    def construct(self, logits, labels):
        return self.inner(logits.sum(-1), labels.astype(ms.float32))


class NetWithLoss(nets.Digits):
    """Has a Cell of the name that the loss of Model would have."""

    def __init__(self):
        super().__init__()
        self.loss_fn = nn.ReLU()

    def construct(self, x):
        return self.loss_fn(super().construct(x))


@pytest.mark.parametrize(
    ("network", "above"),
    [(nets.Digits, "Cell.loss_fn."), (NetWithLoss, "Cell.Model.loss_fn.")],
    ids=["plain", "same"],
)
def test_the_cells_of_a_loss_have_names_of_their_own(debug, network, above):
    net, (x, y) = network(), nets.digits()[0]
    data = GeneratorDataset([(x.asnumpy(), y.asnumpy())], ["image", "label"], shuffle=False)
    model = ms.Model(net, LossWithLayers(), nn.Adam(net.trainable_params(), 1e-2))
    model.train(1, data, callbacks=[MsprobeStep(debug(level="L0"))], dataset_sink_mode=False)
    names = list(debug.dump(0).data)
    assert (
        f"{above}LossWithLayers.forward.0" in names and f"{above}inner.MSELoss.backward.0" in names
    )
    assert "Cell.conv.Conv2d.forward.0" in names
    assert ("Cell.loss_fn.ReLU.forward.0" in names) == (network is NetWithLoss)


def test_an_argument_that_is_not_a_debugger_is_refused_by_name():
    with pytest.raises(UsageError, match="debugger is str"):
        MsprobeStep("config.json")
