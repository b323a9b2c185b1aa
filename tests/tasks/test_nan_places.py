# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task "nan_check" names the line of user code in which NaN/Inf begins, and no line of the healthy twin.

Each plant is a function of ``bad`` that gives (net or None, a step). The line that is to be named ends with ``# here``.
"""

from __future__ import annotations

import inspect
import logging
import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops
from mindspore.mint import distributed

from tests.support import collectives
from tests.support.tensors import tensor

pytestmark = pytest.mark.medium

X = tensor(np.random.default_rng(3).normal(size=(4, 6)))
PLANTS = {}


def plant(*levels, outside=False):
    """Register a plant for some levels.

    Args:
        levels: the levels at which the line is named.
        outside: the value comes from the data or a weight: a warning names the line, and no call is blamed.
    """

    def add(function):
        PLANTS.update(
            {
                f"{function.__name__}-{level}": (function, level, outside)
                for level in levels or ("L1",)
            }
        )
        return function

    return add


def grad(function, x=X):
    return lambda: ms.grad(function)(x)


class Layers(nn.Cell):
    """Two layers with something between them."""

    def __init__(self, between):
        super().__init__()
        self.first, self.last = nn.Dense(6, 5, weight_init="xavier_uniform"), nn.Dense(5, 3)
        self.between = between

    def construct(self, x):
        h = ops.tanh(self.first(x))
        h = self.between(h)
        return self.last(h)


def training(net, scale=1.0):
    return ms.value_and_grad(
        lambda x: (net(x).astype(ms.float32) ** 2).sum() * scale, None, net.trainable_params()
    )


# -- forward ---------------------------------------------------------------------------------------------------------


@plant("L1", "mix")
def masked_row(bad):
    mask = np.tril(np.ones((4, 6), bool))
    mask[2] &= not bad

    def step(x):
        scores = ops.masked_fill(x, ms.Tensor(~mask), -math.inf)
        weights = ops.log_softmax(scores)  # here
        return weights[:, 0].sum()

    return None, grad(step)


@plant()
def masked_row_by_hand(bad):
    mask = tensor(np.full((4, 6), 0.0 if not bad else -math.inf))

    def step(x):
        scores = ops.add(x, mask)
        scores = scores - scores.max(axis=-1, keepdims=True)  # here
        return ops.exp(scores).sum()

    return None, grad(step)


@plant()
def masked_row_of_a_mask_in_float16(bad):
    mask = np.triu(np.full((4, 6), -1e9, np.float32), 0 if bad else 1)
    mask[1:, 0] = 0.0

    def step(x):
        half = ms.Tensor(mask).astype(ms.float16)  # -inf
        scores = x.astype(ms.float16) + half
        return ops.softmax(scores).astype(ms.float32).sum()  # here

    return None, lambda: step(X)


@plant()
def inf_times_0(bad):
    def step(x):
        large = ops.full_like(x, math.inf)
        return (large * (0.0 if bad else 1.0)).min()  # here

    return None, lambda: step(X)


@plant("L1", "mix")
def log_of_0(bad):
    def step(x):
        p = ops.relu(x) + (0.0 if bad else 1e-6)
        return ops.log(p).mean()  # here

    return None, grad(step)


@plant()
def division_by_0(bad):
    count = tensor(0.0 if bad else 3.0)

    def step(x):
        return (x / count).sum()  # here

    return None, grad(step)


@plant()
def root_of_a_negative_number(bad):
    def step(x):
        return ops.sqrt(x - (10.0 if bad else -10.0)).sum()  # here

    return None, grad(step)


@plant()
def arccos_beyond_1(bad):
    def step(x):
        cosine = ops.tanh(x) * (2.0 if bad else 0.9)
        return ops.acos(cosine).sum()  # here

    return None, grad(step)


@plant()
def power_of_a_negative_number(bad):
    def step(x):
        return ops.pow(x if bad else ops.exp(x), 0.5).sum()  # here

    return None, grad(step)


@plant()
def exp_overflows(bad):
    def step(x):
        return ops.exp(x * (1000.0 if bad else 1.0)).sum()  # here

    return None, grad(step)


@plant()
def cast_to_float16_overflows(bad):
    def step(x):
        wide = ops.exp(x) * (1e6 if bad else 1.0)
        return wide.astype(ms.float16).sum()  # here

    return None, grad(step)


@plant()
def product_in_float16_overflows(bad):
    x = tensor(np.full((4, 6), 200.0 if bad else 2.0), np.float16)

    def step(x):
        return ops.matmul(x, x.T).mean()  # here

    return None, grad(step, x)


@plant()
def all_labels_ignored(bad):
    labels = tensor([-100] * 4 if bad else [1, 2, -100, 0], np.int32)

    def step(x):
        return ops.cross_entropy(x, labels)  # here

    return None, grad(step)


@plant("L1", "L0")
def in_a_cell(bad):
    large = tensor(np.full((3, 5), 3e38 if bad else 1.0))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Dense(6, 5), nn.Dense(5, 3, weight_init=large)

        def construct(self, x):
            h = self.first(x) * 0.0 + 1.0
            return self.last(h)  # here

    net = Net()
    return net, lambda: net(X)


# -- backward --------------------------------------------------------------------------------------------------------


@plant("L1", "mix")
def backward_of_sqrt(bad):
    def step(x):
        y = ops.relu(x)
        return ops.sqrt(y if bad else y + 1.0).sum()  # here

    return None, grad(step)


@plant()
def norm_of_zeros(bad):
    def step(x):
        y = x * (0.0 if bad else 1.0)
        return ops.norm(y)  # here

    return None, grad(step)


@plant()
def backward_of_a_power(bad):
    def step(x):
        y = ops.abs(x * (0.0 if bad else 1.0))
        return (y**0.25).sum()  # here

    return None, grad(step)


@plant()
def where_hides_the_forward_only(bad):
    """The classic trap: the value is replaced, its gradient is 0 times Inf."""

    def step(x):
        safe = ops.relu(x) + (0.0 if bad else 1.0)
        root = ops.sqrt(safe)  # here
        return ops.where(safe > 0, root, ops.zeros_like(root)).sum()

    return None, grad(step)


@plant("L1", "mix")
def o2_overflows(bad):
    """The backward of the cast at the end of the net overflows."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(6, 5), nn.Dense(5, 3)

        def construct(self, x):
            h = ops.tanh(self.first(x))
            return self.second(h)

    net = ms.amp.auto_mixed_precision(Net(), "O2")

    def loss(x):
        y = net(x)  # here
        return ((y - 1.0) ** 2).sum() * (1e6 if bad else 1.0)

    return net, lambda: ms.value_and_grad(loss, None, net.trainable_params())(X)


@plant("L1", "mix", "L0")
def loss_scaling_overflows(bad):
    """Half precision inside of the net, where the scaled gradient grows too large."""
    weight = tensor(np.full((3, 5), 1000.0))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = (
                nn.Dense(6, 5),
                nn.Dense(5, 3, weight_init=weight).to_float(ms.float16),
            )

        def construct(self, x):
            h = ops.tanh(self.first(x))
            return self.second(h)  # here

    net = Net()
    scaler = ms.amp.StaticLossScaler(30000.0 if bad else 1.0)
    step = ms.value_and_grad(
        lambda x: scaler.scale(net(x).astype(ms.float32).sum()), None, net.trainable_params()
    )
    return net, lambda: step(X)


# -- data, weights, embeddings, optimizers, collectives --------------------------------------------------------------


@plant("L1", "mix", outside=True)
def data(bad):
    x = X.asnumpy().copy()
    x[1, 2] = math.nan if bad else 1.0

    def step(x):
        y = x * 2.0  # here
        return ops.tanh(y).sum()

    return None, grad(step, ms.Tensor(x))


@plant("L1", "mix", "L0", outside=True)
def weight(bad):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Dense(6, 5), nn.Dense(5, 3)

        def construct(self, x):
            h = self.first(x)
            return self.second(h)  # here

    net = Net()
    if bad:
        net.second.weight.set_data(tensor(np.full((3, 5), math.nan)))
    return net, lambda: net(X)


@plant("L1", "mix", "L0", outside=True)
def embedding(bad):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            table = np.ones((7, 4), np.float32)
            table[3] = math.nan
            self.tokens, self.last = (
                nn.Embedding(7, 4, embedding_table=ms.Tensor(table)),
                nn.Dense(4, 2),
            )

        def construct(self, tokens):
            h = self.tokens(tokens)  # here
            return self.last(h)

    net = Net()
    return net, lambda: net(tensor([1, 3 if bad else 2], np.int32))


@plant("L1", "mix")
def optimizer_input(bad):
    net = Layers(lambda h: h)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    step = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, optimizer.parameters)
    norm = tensor(0.0 if bad else 1.0)

    def train():
        _, gradients = step(X)
        gradients = tuple(gradient / norm for gradient in gradients)  # here
        optimizer(gradients)

    return net, train


@plant()
def clipping_by_a_norm_of_0(bad):
    def step(x):
        gradient = ms.grad(lambda x: ops.relu(x - (100.0 if bad else -100.0)).sum())(x)
        norm = ops.sqrt(ops.reduce_sum(gradient * gradient))
        return gradient * (1.0 / norm)  # here

    return None, lambda: step(X)


@plant()
def collective(bad):
    given = tensor([1e38, 1.0] if bad else [1.0, 2.0])

    def step(_):
        y = given + 0.0
        distributed.all_reduce(y)  # here
        return y * 0.5

    return None, lambda: step(X)


def _line(function):
    """Return the message that names the marked line of a function, or of a function in it."""
    lines, first = inspect.getsourcelines(function)
    ((number, text),) = [
        (first + i, line) for i, line in enumerate(lines) if line.rstrip().endswith("# here")
    ]
    return f"File {__file__}, line {number}, in ", f": {text.strip()}"


def _watched(debug, function, level, bad):
    net, step = function(bad)
    debugger = debug(task="nan_check", level=level)
    with debugger.recording(net or nn.ReLU()):
        step()
    debugger.step()


FINDING = "First NaN"


def _all_reduce(tensor, op=None, group=None, async_op=False):
    tensor[...] = float(tensor.asnumpy()[0]) * 10.0


@pytest.fixture(autouse=True)
def ten_ranks(monkeypatch):
    """A collective as in a job of ten ranks."""
    collectives.install(monkeypatch, distributed, "all_reduce", _all_reduce)


@pytest.mark.parametrize("name", PLANTS)
def test_the_line_of_user_code_is_named(debug, caplog, name):
    function, level, outside = PLANTS[name]
    caplog.set_level(logging.WARNING, "probe")
    _watched(debug, function, level, bad=True)
    (message,) = [message for message in caplog.messages if "NaN" in message]
    place, source = _line(function)
    assert place in message
    assert source in message
    assert message.startswith(FINDING) != outside
    assert debug.dump_path.exists() != outside


@pytest.mark.parametrize("name", PLANTS)
def test_nothing_is_named_in_the_healthy_twin(debug, caplog, name):
    function, level, _ = PLANTS[name]
    caplog.set_level(logging.WARNING, "probe")
    _watched(debug, function, level, bad=False)
    assert [
        message for message in caplog.messages if "The loss is computed outside" not in message
    ] == []
    assert not debug.dump_path.exists()


LOWEST = float(np.finfo(np.float32).min)
CAUSAL = np.triu(np.ones((4, 4), bool), 1)
MASKS = {
    "masked_fill": lambda scores: ops.masked_fill(scores, ms.Tensor(CAUSAL), -math.inf),
    "where": lambda scores: ops.where(ms.Tensor(CAUSAL), tensor(-math.inf), scores),
    "full and triu": lambda scores: (
        scores + ops.triu(ops.full((4, 4), -math.inf, dtype=ms.float32), 1)
    ),
    "constant": lambda scores: scores + ms.Tensor(np.where(CAUSAL, -np.inf, 0).astype(np.float32)),
    "lowest number twice": lambda scores: (
        scores + (tensor(CAUSAL * LOWEST) + tensor(CAUSAL * LOWEST))
    ),
    "cast to float16": lambda scores: scores + tensor(CAUSAL * -1e9).astype(ms.float16),
    "product": lambda scores: scores + tensor(CAUSAL * 10.0) * LOWEST,
    "inf of a number": lambda scores: ops.minimum(
        scores, ops.full((4, 4), math.inf, dtype=ms.float32) * 2.0
    ),
}


@pytest.mark.parametrize("mask", MASKS)
def test_a_healthy_mask_says_nothing_and_a_later_finding_is_reported(debug, caplog, mask):
    caplog.set_level(logging.WARNING, "probe")
    x = X[:, :4]
    debugger = debug(task="nan_check")
    for divisor in (1.0, 0.0):
        assert caplog.messages == []
        with debugger.recording():
            ms.grad(lambda x: ops.softmax(MASKS[mask](x)).sum())(x)
            x / divisor
        debugger.step()
    (message,) = caplog.messages
    assert message.startswith("First NaN/Inf: Tensor.__truediv__.")
    assert ": x / divisor; " in message
