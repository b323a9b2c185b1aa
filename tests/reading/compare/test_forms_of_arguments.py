# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training whose calls give their arguments by place, and the same one with names and lists."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops

import probe
from tests.reading.builders import forward, tensor, value, write


class ByPlace(nn.Cell):
    """Attention over its input; each call is given its arguments by their places."""

    scale = 2.0

    def construct(self, q, k, mask=None):
        scores = ops.div(mint.matmul(q, k.swapaxes(-1, -2)), self.scale)
        return ops.softmax(ops.select(mask, scores, scores * 0 - 1e4), -1)

    def mixed(self, x, k, mask):
        h = x.view(-1, 3, 8)
        h = mint.matmul(self(h, k.reshape((-1, 3, 8)), mask), h)
        h = mint.cat((h, h), -1)
        h = mint.chunk(h, 2, -1)[1]
        h = ops.mul(h, h).permute(0, 2, 1)
        return mint.mean(h, (2,), True).sum(2)

    def loss(self, logits, labels):
        return ops.cross_entropy(logits, labels, None, -100, "mean", 0.1)


class ByName(ByPlace):
    """The same with names, in another order, and with lists where the other has none."""

    def construct(self, q, k, mask=None):
        scores = mint.matmul(other=k.swapaxes(-1, -2), input=q)
        scores = ops.div(scores, other=self.scale)
        scores = ops.select(condition=mask, input=scores, other=scores * 0 - 1e4)
        return ops.softmax(scores, axis=-1)

    def mixed(self, x, k, mask):
        h = x.view((-1, 3, 8))
        h = mint.matmul(self(h, mask=mask, k=k.reshape(-1, 3, 8)), h)
        h = mint.cat(tensors=[h, h], dim=-1)
        h = mint.chunk(h, chunks=2, dim=-1)[1]
        h = ops.mul(input=h, other=h).permute((0, 2, 1))
        return mint.mean(h, keepdim=True, dim=2).sum(axis=2)

    def loss(self, logits, labels):
        return ops.cross_entropy(
            logits, labels, label_smoothing=0.1, reduction="mean", ignore_index=-100
        )


class OtherScale(ByName):
    scale = 2.2


class OtherLoss(ByName):
    def loss(self, logits, labels):
        return ops.cross_entropy(
            logits, labels, label_smoothing=0.2, reduction="mean", ignore_index=-100
        )


class Net(nn.Cell):
    """A small net around the calls."""

    def __init__(self, calls):
        super().__init__()
        self.first, self.keys, self.last = nn.Dense(6, 8), nn.Dense(6, 8), nn.Dense(8, 4)
        self.calls = calls

    def construct(self, x):
        mask = ops.tril(ops.ones((3, 3))).bool()
        return self.last(self.calls.mixed(self.first(x), self.keys(x), mask))


def trained(folder, calls, **settings):
    """Record two steps of a training; return the folder."""
    net = Net(calls)
    for seed, parameter in enumerate(net.get_parameters()):
        array = np.random.RandomState(seed).randn(*parameter.shape).astype(np.float32)
        parameter.set_data(Tensor(array))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    x = Tensor(np.random.RandomState(20).randn(6, 6).astype(np.float32))
    labels = Tensor([0, 1], ms.int32)
    gradient = ms.value_and_grad(lambda: calls.loss(net(x), labels), None, optimizer.parameters)
    debugger = probe.PrecisionDebugger(dump_path=str(folder), level="mix", **settings)
    for _ in range(2):
        debugger.start(net)
        _, gradients = gradient()
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()
    return folder


@pytest.fixture(scope="module", params=["statistics", "tensor"])
def golden(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "dump"
    return trained(folder, ByPlace(), task=request.param), request.param


def test_the_form_of_arguments_is_no_difference(golden, tmp_path):
    folder, task = golden
    other = trained(tmp_path / "dump", ByName(), task=task)
    for compared in (probe.compare(folder, other), probe.compare(other, folder)):
        assert compared.status == 0
        said = str(compared)
        assert "no difference beyond tolerance" in said
        assert "harmless" not in said
        assert "changed too" not in said


@pytest.mark.parametrize(
    ("calls", "name", "values"),
    [
        (OtherScale, "Functional.div.0.forward", ("2.0", "2.2")),
        (OtherLoss, "Functional.cross_entropy.0.forward", ("0.1", "0.2")),
    ],
)
def test_a_value_that_is_another_one_is_named_alone(golden, tmp_path, calls, name, values):
    folder, task = golden
    other = trained(tmp_path / "dump", calls(), task=task)
    for compared in (probe.compare(folder, other), probe.compare(other, folder)):
        assert compared.status == 1
        assert [origin.name for origin in compared.origins] == [name]
        said = str(compared.origins[0].said)
        assert all(text in said for text in values)
        assert "-100" not in said
        assert "None" not in said
        assert "changed too" not in str(compared)


def test_operands_that_their_names_exchange_are_told_with_their_places(tmp_path):
    x, y = (Tensor(np.random.RandomState(seed).rand(3, 4).astype(np.float32)) for seed in (1, 2))
    folders = []
    for name, subtract in (
        ("a", lambda: ops.sub(x, y)),
        ("b", lambda: ops.sub(input=y, other=x)),
    ):
        debugger = probe.PrecisionDebugger(dump_path=str(tmp_path / name), level="L1")
        debugger.start()
        subtract()
        debugger.stop()
        debugger.step()
        debugger.close()
        folders.append(tmp_path / name)
    compared = probe.compare(*folders)
    assert compared.status == 1
    said = str(compared.first.said)
    assert "input 0: Float32 [3, 4] in A, not given in B" in said
    assert "argument other: not given in A, Float32 [3, 4] in B" in said


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ({}, {"axis": 0}, "not given (default -1) in A, 0 in B"),
        ({}, 0, "not given (default -1) in A, 0 in B"),
        (0, {"axis": 1}, "0 in A, 1 in B"),
        ({"axis": 0}, 1, "0 in A, 1 in B"),
    ],
)
def test_an_argument_that_is_not_given_has_its_default(tmp_path, left, right, told):
    x = Tensor(np.random.RandomState(1).rand(3, 4).astype(np.float32))
    folders = []
    for name, given in (("a", left), ("b", right)):
        debugger = probe.PrecisionDebugger(dump_path=str(tmp_path / name), level="L1")
        debugger.start()
        ops.softmax(x, **given) if isinstance(given, dict) else ops.softmax(x, given)
        debugger.stop()
        debugger.step()
        debugger.close()
        folders.append(tmp_path / name)
    compared = probe.compare(*folders)
    said = str(compared.first.said)
    assert said.startswith("Functional.softmax.0.forward, ")
    assert said.endswith(told)
    assert said.count(" in B") == 1


@pytest.mark.parametrize("header", [{}, {"run": []}, {"run": {"versions": {"mindspore": "0.1"}}}])
def test_no_default_is_told_of_another_mindspore(tmp_path, header):
    made = [tensor(norm=5.0)], [tensor(norm=6.0)]
    for name, outputs, more in (("a", made[0], {}), ("b", made[1], {"axis": value(0)})):
        call = {"Functional.softmax.0.forward": forward([tensor()], outputs, **more)}
        write(tmp_path / name / "step0" / "rank0", call, **header)
    said = str(probe.compare(tmp_path / "a", tmp_path / "b").first.said)
    assert "not given in A, 0 in B" in said
