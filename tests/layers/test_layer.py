# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A layer above PyNative that a test describes is recorded as Cells are, with its gradients and updates."""

from __future__ import annotations

import json

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter

from probe.capture.training import events
from probe.errors import UsageError
from probe.layers import layer
from tests.layers.third import Affine, Block, BlockLayer, Both, Rule
from tests.support.tensors import tensor

X = tensor(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32))


def new_net():
    """Return a block of two blocks."""
    first = Parameter(tensor(np.linspace(0, 1, 12).reshape(3, 4).astype(np.float32)), name="a")
    second = Parameter(tensor(np.linspace(1, 2, 8).reshape(4, 2).astype(np.float32)), name="b")
    return Both(first=Affine(weight=first), second=Affine(weight=second))


@pytest.fixture
def blocks(monkeypatch):
    """Let this process know the layer."""
    place = f"{BlockLayer.__module__}:{BlockLayer.__name__}"
    monkeypatch.setattr(layer, "_LAYERS", {**layer._LAYERS, place: ""})
    yield
    monkeypatch.undo()
    events._updates_of.cache_clear()


def train(debugger=None, steps=2):
    """Return the losses and the parameters of a training."""
    net = new_net()
    weights = [net.first.weight, net.second.weight]
    rule = Rule(weights)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, tuple(weights))
    losses = []
    for _ in range(steps):
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradient(X)
        rule.advance(gradients)
        losses.append(loss.asnumpy())
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return [*losses, *(weight.asnumpy() for weight in weights)]


@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
def test_blocks_are_recorded_and_the_training_keeps_its_bits(blocks, debug, tmp_path, level):
    bare = train()
    debugger = debug(level=level, dump_path=str(tmp_path / "dump"))
    watched = train(debugger)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(bare, watched))
    document = json.loads((tmp_path / "dump/step1/rank/dump.json").read_text())
    names = set(document["data"])
    assert document["framework"] == "blocks"
    modules = {"Module.first.Affine.forward.0", "Module.second.Affine.forward.0"}
    backwards = {name.replace("forward", "backward") for name in modules}
    gradients = {"Module.first.Affine.parameters_grad.0", "Module.second.Affine.parameters_grad.0"}
    apis = {"Functional.tanh.0.forward", "Functional.tanh.0.backward"}
    assert (modules | backwards | gradients <= names) is (level != "L1")
    assert (apis <= names) is (level != "L0")
    update = document["data"]["Module.optimizer.Rule.forward.0"]
    assert update["input_kwargs"]["learning_rate"]["value"] == 0.5
    updated = [item["value"] for item in update["input_kwargs"]["parameters"]]
    assert updated == ["first.weight", "second.weight"]


def test_run_json_names_the_parameters_by_their_places(blocks, debug, tmp_path):
    train(debug(level="L0", dump_path=str(tmp_path / "dump")))
    found = json.loads((tmp_path / "dump/step0/rank/run.json").read_text())
    assert [path for path, _ in found["cells"]] == ["", "first", "second"]
    assert {name: it["cell"] for name, it in found["parameters"].items()} == {
        "first.weight": "first",
        "second.weight": "second",
    }


def test_the_hooks_are_gone_after_stop(blocks, debug, tmp_path):
    before = vars(Block)["__call__"], Rule.advance.__code__
    train(debug(level="mix", dump_path=str(tmp_path / "dump")))
    assert (vars(Block)["__call__"], Rule.advance.__code__) == before


def test_a_block_is_refused_where_its_layer_is_unknown(debug, tmp_path):
    debugger = debug(level="L0", dump_path=str(tmp_path / "dump"))
    with pytest.raises(UsageError, match=r"model is Both\. Allowed: a mindspore\.nn\.Cell, or"):
        debugger.start(new_net())


def test_a_model_of_pytorch_gets_a_line_that_says_where_it_is_recorded(debug, tmp_path):
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})
    net = type("Net", (module,), {})()
    debugger = debug(level="L0", dump_path=str(tmp_path / "dump"))
    with pytest.raises(
        UsageError, match=r"model is Net\. .*It is a model of PyTorch, .*msprobe for"
    ):
        debugger.start(net)
