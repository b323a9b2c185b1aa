# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An adapter of torch that lacks what probe asks for leaves the training as it is, and is told in one line."""

from __future__ import annotations

import importlib.machinery
import logging
import sys
import types

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from probe.layers import layer
from tests.support.tensors import tensor


class Adapted(ms.Tensor):
    """The tensor of an adapter."""


class Module:
    """A module that has nothing but its call."""

    def __call__(self, x):
        return self.forward(x)


class Optimizer:
    """The optimizer of an adapter."""


def adapter(*parts):
    """Return a package of torch with some of its parts."""
    torch = types.ModuleType("torch")
    torch.Tensor = Adapted
    for name, member in (("nn", {"Module": Module}), ("optim", {"Optimizer": Optimizer})):
        if name in parts:
            setattr(torch, name, types.SimpleNamespace(**member))
    return torch


def losses(debugger=None, module=None):
    """Return the bytes of the losses of a training, in which a module may run too."""
    net = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    x = tensor(np.ones((2, 3), np.float32))
    found = []
    for _ in range(2):
        if debugger is not None:
            debugger.start(module or net)
        loss, gradients = gradient(x)
        optimizer(gradients)
        if module is not None:
            loss = loss + module(x).sum()
        found.append(loss.asnumpy().tobytes())
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return found


@pytest.fixture(autouse=True)
def known_anew():
    """Forget the layers that other tests have met."""
    layer._made.cache_clear()
    layer._warn.cache_clear()
    yield
    layer._made.cache_clear()


@pytest.mark.parametrize(("parts", "lack"), [((), "nn"), (("nn",), "optim")])
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_the_training_goes_on(debug, monkeypatch, caplog, parts, lack, level):
    bare = losses()
    monkeypatch.setitem(sys.modules, "torch", adapter(*parts))
    with caplog.at_level(logging.WARNING, "probe"):
        assert losses(debug(level=level)) == bare
    told = [message for message in caplog.messages if "its version is not known here" in message]
    assert len(told) == 1
    assert f"no attribute '{lack}'" in told[0]
    assert debug.dump(1).data


def test_a_package_that_is_being_imported_is_not_told(monkeypatch, caplog):
    torch = adapter()
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None)
    torch.__spec__._initializing = True
    monkeypatch.setitem(sys.modules, "torch", torch)
    with caplog.at_level(logging.WARNING, "probe"):
        assert len(layer.layers()) == 1
    assert not caplog.messages


def test_a_module_without_names_and_hooks_runs(debug, monkeypatch):
    class Mine(Module):
        def forward(self, x):
            return x * 2

    bare = losses(module=Mine())
    monkeypatch.setitem(sys.modules, "torch", adapter("nn", "optim"))
    assert losses(debug(level="mix"), Mine()) == bare
    assert debug.dump(1).header["framework"] == "mindtorch"
