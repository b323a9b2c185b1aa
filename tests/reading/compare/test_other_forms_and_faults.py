# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Small trainings whose answers were wrong: no sentence of an answer may say anything that is not so."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe


class Two(nn.Cell):
    """A net and its copy, which gives the values of the following states."""

    def __init__(self):
        super().__init__()
        self.own, self.copy = (
            nn.SequentialCell(nn.Dense(4, 5), nn.ReLU(), nn.Dense(5, 3)) for _ in range(2)
        )
        self.copy.update_parameters_name("copy.")

    def construct(self, x):
        return self.own(x)


def loss_of(net, x, following, form):
    """Return the loss, with the value of the copy for the best action of the net."""
    own, copy = (net.copy, net.own) if form == "exchanged" else (net.own, net.copy)
    y = own(x)
    later = copy(following)
    best = net.own(following).argmax(-1)
    taken = ops.gather_elements(later, 1, best.expand_dims(-1))
    return (y * y).mean() + (taken * taken).mean()


def trained(folder, form="", average="weighted"):
    """Record two steps of a training; return the folder."""
    ms.set_seed(1)
    net = Two()
    for parameter, seed in zip(net.get_parameters(), range(9)):
        array = np.random.RandomState(seed).randn(*parameter.shape).astype(np.float32)
        parameter.set_data(Tensor(array))
    optimizer = nn.SGD(net.own.trainable_params(), 0.1)
    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)
    debugger = probe.PrecisionDebugger(dump_path=str(folder), level="mix")
    pairs = list(zip(net.own.get_parameters(), net.copy.get_parameters()))
    for step in range(2):
        x, following = (
            Tensor(np.random.RandomState(20 + 2 * step + k).randn(5, 4).astype(np.float32))
            for k in (0, 1)
        )
        debugger.start(net)
        _, gradients = gradient(net, x, following, form)
        optimizer(gradients)
        for own, copy in pairs:
            if average == "weighted":
                ops.assign(copy, copy * 0.9 + own * 0.1)
            elif average == "by a difference":
                ops.assign(copy, copy + (own - copy) * 0.1)
            else:
                ops.assign(copy, copy + (own + copy) * 0.1)
        debugger.stop()
        debugger.step()
    debugger.close()
    return folder


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("golden") / "dump")


def both(golden, run):
    return probe.compare(golden, run), probe.compare(run, golden)


@pytest.mark.parametrize(("average", "status"), [("by a difference", 0), ("by a sum", 1)])
def test_an_average_of_weights_in_another_form(golden, tmp_path, average, status):
    """The calls use parameters in other places: no parameter differs."""
    for found in both(golden, trained(tmp_path / "dump", average=average)):
        assert found.status == status, str(found)
        assert "parameter" not in [origin.kind for origin in found.origins]


def test_two_cells_that_are_exchanged_are_named(golden, tmp_path):
    found, back = both(golden, trained(tmp_path / "dump", form="exchanged"))
    for one in (found, back):
        assert one.status == 1
        assert one.first.kind == "wiring"
        assert "Cell." in one.first.sentence, one.first.sentence


class Softplus(nn.Cell):
    """The values of softplus, and half of its gradient."""

    def construct(self, x):
        return ops.log1p(ops.exp(x))

    def bprop(self, x, out, dout):
        return (dout * ops.sigmoid(x) * 0.5,)


class Layered(nn.Cell):
    """A layer, whose activation may have another form, and a softplus."""

    def __init__(self, is_wrong):
        super().__init__()
        self.is_wrong = is_wrong
        self.layer, self.softplus = nn.Dense(4, 3), Softplus()

    def construct(self, x):
        y = self.layer(x)
        if not self.is_wrong:
            return ops.softplus(ops.relu(y)).sum()
        y = ops.maximum(y, ops.zeros_like(y))
        return self.softplus(y).sum()


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_a_wrong_backward_hides_in_no_form(tmp_path, level):
    """Its values are those of softplus, and it is fed by another form of relu: that alone is told as a form."""
    for name in ("right", "wrong"):
        ms.set_seed(1)
        net = Layered(name == "wrong")
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        gradient = ms.value_and_grad(net, None, optimizer.parameters)
        debugger = probe.PrecisionDebugger(dump_path=str(tmp_path / name), level=level)
        debugger.start(net)
        x = np.random.RandomState(1).randn(5, 4).astype(np.float32)
        optimizer(gradient(Tensor(x))[1])
        debugger.stop()
        debugger.step()
        debugger.close()
    for found in both(tmp_path / "right", tmp_path / "wrong"):
        assert found.status == 1
        assert "Softplus" in str(found.first.said) or "softplus" in found.first.source, str(found)
        forms = [str(origin.said) for origin in found.soft if "another form" in str(origin.said)]
        assert not any("softplus" in said or "log1p" in said for said in forms), forms
