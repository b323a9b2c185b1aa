# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Four small nets in one dtype, each with the same sums in other orders; the exact results are the same."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

STEPS = 2
NETS = ("gpt", "convolution", "mlp", "rnn")
ORDERS = (
    "product in two parts", "product in four parts", "parts in reverse", "bias first", "scale first", "mean of halves",
    "residual last", "loss of halves",
)  # fmt: skip
_PARTS = {
    "product in two parts": 2,
    "product in four parts": 4,
    "parts in reverse": 4,
    "bias first": 2,
}


class Weights:
    """Makes parameters: equal numbers for equal seeds, whatever the order of a net's sums is."""

    def __init__(self, dtype):
        self.dtype, self._rng = dtype, np.random.RandomState(5)

    def __call__(self, name, *shape, scale=None):
        scale = shape[0] ** -0.5 if scale is None else scale
        numbers = Tensor((self._rng.randn(*shape) * scale).astype(np.float32)).astype(self.dtype)
        return Parameter(numbers, name=name)


class Product(nn.Cell):
    """x @ weight + bias, times 0.7."""

    def __init__(self, weights, inputs, outputs, change):
        super().__init__()
        self.weight, self.bias = (
            weights("weight", inputs, outputs),
            weights("bias", outputs, scale=0.1),
        )
        self.change, self.parts = change, _PARTS.get(change, 1)

    def construct(self, x):
        if self.change == "scale first":
            x = x * 0.7
        if self.parts == 1:
            parts = [(x, self.weight)]
        else:
            parts = list(zip(ops.chunk(x, self.parts, -1), ops.chunk(self.weight, self.parts, 0)))
        if self.change == "parts in reverse":
            parts.reverse()
        total = self.bias * 0.7 if self.change == "bias first" else None
        for left, right in parts:
            own = ops.matmul(left, right)
            own = own if self.change == "scale first" else own * 0.7
            total = own if total is None else total + own
        return total if self.change == "bias first" else total + self.bias * 0.7


class Norm(nn.Cell):
    """Layer normalisation of simple calls."""

    def __init__(self, weights, width, change):
        super().__init__()
        self.gain, self.change = weights("gain", width, scale=1.0), change

    def mean(self, x):
        if self.change != "mean of halves":
            return x.mean(-1, True)
        left, right = ops.chunk(x, 2, -1)
        return (left.mean(-1, True) + right.mean(-1, True)) * 0.5

    def construct(self, x):
        x = x - self.mean(x)
        return x / ops.pow(self.mean(x * x) + 1e-3, 0.5) * self.gain


def added(x, first, second, change):
    """Return the sum of three."""
    return x + (first + second) if change == "residual last" else (x + first) + second


class Mlp(nn.Cell):
    def __init__(self, weights, change):
        super().__init__()
        self.change = change
        self.enter, self.leave = Product(weights, 16, 32, change), Product(weights, 32, 8, change)
        self.left = nn.CellList([Product(weights, 32, 32, change) for _ in range(3)])
        self.right = nn.CellList([Product(weights, 32, 32, change) for _ in range(3)])
        self.norms = nn.CellList([Norm(weights, 32, change) for _ in range(3)])

    def construct(self, x):
        x = self.enter(x)
        for left, right, norm in zip(self.left, self.right, self.norms):
            hidden = norm(x)
            x = added(x, ops.tanh(left(hidden)), ops.sigmoid(right(hidden)), self.change)
        return self.leave(x)


class Convolution(nn.Cell):
    def __init__(self, weights, change):
        super().__init__()
        self.change = change
        self.first, self.second = (
            weights("first", 8, 1, 3, 3, scale=0.4),
            weights("second", 8, 8, 3, 3, scale=0.15),
        )
        self.norm, self.pool = Norm(weights, 8, change), nn.AvgPool2d(2, 2)
        self.left, self.right = Product(weights, 128, 32, change), Product(weights, 128, 32, change)
        self.leave = Product(weights, 32, 8, change)

    def construct(self, x):
        x = ops.conv2d(x.reshape(-1, 1, 4, 4), self.first, padding=1, pad_mode="pad")
        x = self.norm(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        x = ops.tanh(ops.conv2d(ops.relu(x), self.second, padding=1, pad_mode="pad")).reshape(
            -1, 128
        )
        return self.leave(
            added(ops.chunk(x, 4, -1)[0], ops.tanh(self.left(x)), self.right(x), self.change)
        )


class Rnn(nn.Cell):
    def __init__(self, weights, change):
        super().__init__()
        self.change = change
        self.enter, self.again = Product(weights, 4, 32, change), Product(weights, 32, 32, change)
        self.norm, self.leave = Norm(weights, 32, change), Product(weights, 32, 8, change)

    def construct(self, x):
        state = None
        for part in ops.chunk(x, 4, -1):
            entered = self.enter(part)
            state = ops.tanh(
                entered if state is None else added(state, entered, self.again(state), self.change)
            )
        return self.leave(self.norm(state))


class Block(nn.Cell):
    def __init__(self, weights, change):
        super().__init__()
        self.norm, self.change = Norm(weights, 32, change), change
        self.q, self.k, self.v, self.o, self.up = (
            Product(weights, 32, 32, change) for _ in range(5)
        )

    def construct(self, x, mask):
        hidden = self.norm(x)
        weights = ops.softmax(
            ops.matmul(self.q(hidden), self.k(hidden).transpose(0, 2, 1)) * 0.2 + mask, -1
        )
        return added(
            x, self.o(ops.matmul(weights, self.v(hidden))), ops.gelu(self.up(hidden)), self.change
        )


class Gpt(nn.Cell):
    def __init__(self, weights, change):
        super().__init__()
        self.enter = Product(weights, 16, 32, change)
        self.positions = weights("positions", 1, 8, 32, scale=0.5)
        self.blocks = nn.CellList([Block(weights, change) for _ in range(2)])
        self.norm, self.leave = Norm(weights, 32, change), Product(weights, 32, 8, change)
        self.mask = Tensor(np.triu(np.full((8, 8), -1e4, np.float32), 1)).astype(weights.dtype)

    def construct(self, x):
        x = self.enter(x).reshape(-1, 8, 32) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return self.leave(self.norm(x)).reshape(-1, 8)


_CLASSES = dict(zip(NETS, (Gpt, Convolution, Mlp, Rnn)))


def train(name, change, dtype, debugger, prepare):
    """Train a net for a few steps; ``prepare`` is called with it before."""
    net = _CLASSES[name](Weights(dtype), change)
    prepare(net)
    net.set_train()
    parameters = net.trainable_params()  # no optimizer of MindSpore takes bfloat16
    rng = np.random.RandomState(1)

    def forward(x, y):
        logits = net(x)
        logits = logits if dtype == ms.float32 else logits.astype(ms.float32)
        if change != "loss of halves":
            return ops.cross_entropy(logits, y)
        (left, right), (one, two) = ops.chunk(logits, 2), ops.chunk(y, 2)
        return (ops.cross_entropy(left, one) + ops.cross_entropy(right, two)) * 0.5

    gradient = ms.value_and_grad(forward, None, parameters)
    for _ in range(STEPS):
        x, y = rng.randn(32, 16).astype(np.float32), rng.randint(0, 8, 32).astype(np.int32)
        x, y = Tensor(x).astype(dtype), Tensor(y)
        debugger.start(net)
        _, gradients = gradient(x, y)
        for parameter, own in zip(parameters, gradients):
            parameter.set_data(parameter - own * 0.05)
        debugger.stop()
        debugger.step()
