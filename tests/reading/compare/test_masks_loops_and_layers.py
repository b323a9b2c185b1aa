# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rewritings with masks, loops and exchanged operands are no faults; one fault in each layer is one finding."""

from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import probe
from tests.support.thorough import thorough_but


class Layer(nn.Cell):
    """Two norms around a Dense; a fault takes one of them twice."""

    def __init__(self, form):
        super().__init__()
        self.first, self.second = nn.LayerNorm((4,)), nn.LayerNorm((4,))
        self.dense, self.skip = nn.Dense(4, 4), nn.Dense(4, 4)
        self.form = form

    def construct(self, x):
        h = self.dense(self.first(x))
        if self.form == "one norm twice":
            h = self.first(h)
        else:
            h = self.second(h)
        skip = self.skip(x if self.form == "skip of x" else h)
        return x + h, skip


class Net(nn.Cell):
    """Three layers, the sum of their skips, and a loss with a mask; the value of one output has one element."""

    def __init__(self, form):
        super().__init__()
        self.layers = nn.CellList([Layer(form) for _ in range(3)])
        self.last, self.form = nn.Dense(4, 1), form

    def construct(self, x):
        total = 0
        for layer in self.layers:
            x, skip = layer(x)
            total = total + skip
        parts = (total, x)
        joined = ops.cat(parts[::-1] if self.form == "other order" else parts, 1)
        return joined, self.last(x)


def masked(values, mask, form):
    """Return the sum of the values under a mask."""
    if form == "where":
        return ops.where(mask > 0, values, ops.zeros_like(values)).sum()
    if form == "where not":
        return ops.where(mask < 1, values, ops.zeros_like(values)).sum()
    if form == "where, stopped":
        return ops.where(mask > 0, ops.stop_gradient(values), ops.zeros_like(values)).sum()
    return (values * mask).sum()


def distance(value, goal, form):
    """Return a mean of squares."""
    if form == "goal first":
        return ops.square(goal - value).mean()
    if form == "goal first, halved":
        return ops.square(goal - value * 0.5).mean()
    return ((value - goal) ** 2).mean()


def products(a, form):
    """Return the weights of a ray: each value by the product of the rests before it."""
    rest = 1 - a + 1e-10
    one = ops.ones((a.shape[0], 1), ms.float32)
    if not form.startswith("loop"):
        return a * ops.cat((one, ops.cumprod(rest, dim=1)[:, :-1]), 1)
    left = one[:, 0]
    parts = []
    for place in range(a.shape[1]):
        if form == "loop, late":
            left = left * rest[:, place]
        parts.append(a[:, place] * left)
        if form == "loop":
            left = left * rest[:, place]
    return ops.stack(parts, 1)


def rests(a, form):
    """Return the product of the values before each place, and that of all, which nobody uses."""
    one = ops.ones((a.shape[0], 1), ms.float32)
    if not form:
        every = ops.cumprod(a, dim=1)
        before = ops.cat((one, every[:, :-1]), 1)
        return before, every[:, -1]
    left = one[:, 0]
    parts = []
    for place in range(a.shape[1]):
        parts.append(left)
        is_wrong = form == "wrong end" and place == a.shape[1] - 1
        left = left * a[:, 0 if is_wrong else place]
    return ops.stack(parts, 1), left


def gated(joined, form):
    """Return the first half of the columns under a gate of the second half."""
    own, gate = ops.chunk(joined, 2, 1)
    if form == "halves exchanged":
        own, gate = gate, own
    own = ops.tanh(own)
    return (own * ops.sigmoid(gate)).sum() + (own * own).mean()


def power(value, exponent):
    """Return the sum of a power."""
    return (ops.abs(value) ** exponent).sum()


def pairs(joined, form):
    """Return the sum of the products of two columns."""
    if form == "columns":
        return (joined[:, 2] * joined[:, 3]).sum()
    return joined[:, 2:4].prod(-1).sum()


def trained(folder, form=""):
    """Record two steps of a training; return the folder."""
    net = Net(form)
    for seed, parameter in enumerate(net.get_parameters()):
        array = 0.5 * np.random.RandomState(seed).randn(*parameter.shape)
        parameter.set_data(Tensor(array.astype(np.float32)))
    optimizer = nn.Adam(net.trainable_params(), 0.01)

    def loss(x, goal, mask):
        joined, value = net(x)
        weights = products(ops.sigmoid(joined), form)
        total = masked(joined, mask, form) + distance(value, goal, form) + (weights**2).sum()
        total = total + gated(joined, form) + pairs(joined, form)
        if form == "exponent":
            return total + power(joined, 3.0)
        return total + power(joined, 2.0)

    gradient = ms.value_and_grad(loss, None, optimizer.parameters)
    debugger = probe.PrecisionDebugger(dump_path=str(folder), level="mix")
    for step in range(2):
        random = np.random.RandomState(40 + step)
        arrays = random.randn(6, 4), random.randn(6, 1), random.rand(6, 8) > 0.4
        x, goal, mask = (Tensor(array.astype(np.float32)) for array in arrays)
        debugger.start(net)
        _, gradients = gradient(x, goal, mask)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()
    return folder


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("golden") / "dump")


def both(golden, run):
    return probe.compare(golden, run), probe.compare(run, golden)


@pytest.mark.parametrize("form", ["where", "goal first", "loop", "columns"])
def test_a_rewriting_is_no_fault(golden, tmp_path, form):
    for compared in both(golden, trained(tmp_path / "dump", form)):
        assert compared.status == 0, str(compared)
        assert "another form of the same" in str(compared)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("where not", "Tensor.__lt__.0.forward"),
        ("where, stopped", "Tensor.__gt__.0.forward"),
        ("goal first, halved", "Tensor.__mul__"),
        ("loop, late", "cumprod"),
        ("other order", "Functional.cat.0.forward, input 0.0, comes from"),
        ("halves exchanged", "is another output of Functional.chunk.0.forward in B than in A"),
        ("exponent", "Tensor.__pow__.2.forward, input 1: "),
        ("one norm twice", "of layers.0.second.LayerNorm in"),
        ("skip of x", "Cell.layers.0.skip.Dense.forward.0, input 0, comes from"),
    ],
)
def test_a_fault_is_one_finding(golden, tmp_path, form, said):
    for compared in both(golden, trained(tmp_path / "dump", form)):
        assert compared.status == 1
        assert said in str(compared.origins[0].said), str(compared)
        assert len(compared.origins) == 1, str(compared)
        is_given_outside = "outside of the recorded calls" in str(compared.origins[0].said)
        assert is_given_outside == (form == "skip of x")
        if form == "exponent":  # the line that calls, as the one that is called is the same
            assert "power(joined" in compared.origins[0].source


@pytest.mark.parametrize(("form", "status"), [("loop", 0), ("wrong end", 1)])
def test_the_last_value_of_a_loop_is_compared_if_the_other_side_has_it(tmp_path, form, status):
    a = Tensor(np.random.RandomState(3).rand(5, 4).astype(np.float32))
    folders = []
    for own in ("", form):
        folder = tmp_path / (own or "golden")
        debugger = probe.PrecisionDebugger(dump_path=str(folder), level="L1")
        debugger.start()
        rests(a, own)
        debugger.stop()
        debugger.step()
        debugger.close()
        folders.append(folder)
    for compared in both(*folders):
        assert compared.status == status, str(compared)


class Recurrent(nn.Cell):
    """A recurrent net that keeps its state where a frame is padding; the first state has no content of its own."""

    def __init__(self, form, first):
        super().__init__()
        self.cell, self.form, self.first = nn.GRUCell(4, 4), form, first

    def construct(self, x, mask):
        state = ops.full((x.shape[0], 4), self.first, dtype=ms.float32)
        states = []
        for place in reversed(range(x.shape[1])):
            own = mask[:, place].expand_dims(-1)
            new = self.cell(x[:, place], state)
            if self.form == "product":
                state = own * new + (1 - own) * state
            elif self.form == "product, turned":
                state = own * state + (1 - own) * new
            elif self.form == "product, stopped":
                state = own * new + ops.stop_gradient((1 - own) * state)
            elif self.form == "product, halved":
                state = own * new + (1 - own) * state * 0.5
            elif self.form == "product, only new":
                state = own * new + (1 - own) * new
            else:
                state = state + own * (new - state)
            states.append(state)
        return ops.stack(states, 1)


def recurrent(folder, form="", first=0.0):
    """Record two steps of a training; return the folder."""
    net = Recurrent(form, first)
    for seed, parameter in enumerate(net.get_parameters()):
        array = 0.5 * np.random.RandomState(seed).randn(*parameter.shape)
        parameter.set_data(Tensor(array.astype(np.float32)))
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(
        lambda x, mask: ops.square(net(x, mask)).mean(), None, optimizer.parameters
    )
    mask = Tensor(np.array([[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 1, 0]]).astype(np.float32))
    debugger = probe.PrecisionDebugger(dump_path=str(folder), level="mix")
    for step in range(2):
        x = Tensor(np.random.RandomState(60 + step).randn(3, 4, 4).astype(np.float32))
        debugger.start(net)
        _, gradients = gradient(x, mask)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
    debugger.close()
    return folder


@pytest.mark.parametrize("first", thorough_but([0.0, 0.5], [0.0, 1.0, 0.5, -1.0]))
@pytest.mark.parametrize(
    ("form", "status"),
    [
        ("product", 0),
        ("product, turned", 1),
        ("product, stopped", 1),
        ("product, halved", 1),
        ("product, only new", 1),
    ],
)
def test_a_state_that_begins_with_a_constant_may_be_kept_by_a_product(
    tmp_path, form, status, first
):
    golden = recurrent(tmp_path / "golden", first=first)
    for compared in both(golden, recurrent(tmp_path / "dump", form, first)):
        assert compared.status == status, str(compared)
