# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nets made to expose a tool that changes the training: by regrouping gradients, or through aliased values.

``NETS[name]()`` gives (net, step): ``step(i)`` trains on batch i and returns (loss, gradients).
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH = 24


def _data(seed, *shape):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


class Gate(nn.Cell):
    """Two Cells use the input, and so does the sum around them: three contributions, two of them inside a Cell."""

    def __init__(self):
        super().__init__()
        self.value, self.gate = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)

    def construct(self, x):
        return self.value(x) * ops.sigmoid(self.gate(x))


class Gated(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([Gate() for _ in range(3)])

    def construct(self, x):
        for block in self.blocks:
            x = x + block(x) * 0.3
        return x.sum(-1)


class FourTimes(nn.Cell):
    """One tensor is used four times, by operations of different size."""

    def __init__(self):
        super().__init__()
        self.w = nn.Dense(WIDTH, WIDTH)

    def construct(self, x):
        h = self.w(x)
        return (ops.tanh(h) + h * 1e-3 + ops.exp(h * 0.1) * h + ops.square(h) * 0.7).mean(-1)


class Norms(nn.Cell):
    """BatchNorm with its moving statistics, and dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)
        self.norm, self.drop = nn.BatchNorm1d(WIDTH), nn.Dropout(p=0.3)

    def construct(self, x):
        h = self.norm(self.first(x))
        return (self.drop(ops.relu(h)) + self.second(h)).sum(-1)


class Views(nn.Cell):
    """Views, setitem and in-place operations on what is used again."""

    def __init__(self):
        super().__init__()
        self.w = nn.Dense(WIDTH, WIDTH)

    def construct(self, x):
        h = self.w(x) * 1.5
        first = h[:, : WIDTH // 2] * 2.0
        h[:, 0] = first[:, 1]
        h[1:3] = h[1:3] * 0.5
        return (h * h).mean(-1) + first.mean(-1)


class Shared(nn.Cell):
    """One Cell called three times, and its weight used directly as well."""

    def __init__(self):
        super().__init__()
        self.one = nn.Dense(WIDTH, WIDTH)
        self.alias = self.one

    def construct(self, x):
        x = ops.tanh(self.one(x))
        x = ops.tanh(self.alias(x) + x)
        return (self.one(x) + ops.matmul(x, self.one.weight)).sum(-1)


class Loop(nn.Cell):
    """A recurrent cell by hand: split, stack, concat over time."""

    def __init__(self):
        super().__init__()
        self.inner, self.hidden = nn.Dense(WIDTH // 2, WIDTH), nn.Dense(WIDTH, WIDTH)

    def construct(self, x):
        states, h = [], ops.full((x.shape[0], WIDTH), 0.1, dtype=ms.float32)
        for part in ops.split(x, WIDTH // 2, 1):
            update, keep = ops.split(self.inner(part) + self.hidden(h), WIDTH // 2, 1)
            h = ops.concat([ops.tanh(update), ops.sigmoid(keep)], 1) + h * 0.5
            states.append(h)
        return ops.stack(states).sum((0, 2))


class Recomputed(nn.Cell):
    """A Cell whose forward runs a second time in the backward."""

    def __init__(self):
        super().__init__()
        self.first, self.heavy, self.last = nn.Dense(WIDTH, WIDTH), Gate(), nn.Dense(WIDTH, 4)
        self.heavy.recompute()

    def construct(self, x):
        h = self.first(x)
        return self.last(h + self.heavy(h)).sum(-1)


class Penalty(nn.Cell):
    """The gradient of a gradient."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, 1)

    def inner(self, x):
        return self.second(ops.tanh(self.first(x))).sum()

    def construct(self, x):
        slope = ms.grad(self.inner)(x)
        return self.inner(x) + (slope * slope).sum(-1)


class OwnBackward(nn.Cell):
    """A Cell with a backward of its own."""

    def __init__(self):
        super().__init__()
        self.scale = Parameter(Tensor(_data(3, WIDTH)), name="scale")

    def construct(self, x):
        return x * 2.0

    def bprop(self, x, out, dout):
        return (dout * 3.0,)


class Custom(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.own = nn.Dense(WIDTH, WIDTH), OwnBackward()

    def construct(self, x):
        h = self.first(x)
        return (self.own(h) + h * h).sum(-1)


class Assigns(nn.Cell):
    """A Parameter is updated in the forward and used before and after."""

    def __init__(self):
        super().__init__()
        self.w = nn.Dense(WIDTH, WIDTH)
        self.count = Parameter(
            Tensor(np.zeros(WIDTH, np.float32)), name="count", requires_grad=False
        )

    def construct(self, x):
        h = self.w(x)
        before = (h + self.count).sum(-1)
        ops.assign(self.count, self.count * 0.9 + ops.stop_gradient(h).mean(0))
        return before + (h * self.count).sum(-1)


class Half(nn.Cell):
    """Half precision inside, single precision outside."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (
            nn.Dense(WIDTH, WIDTH).to_float(ms.float16),
            nn.Dense(WIDTH, WIDTH),
        )

    def construct(self, x):
        h = self.first(x)
        return (self.second(h.astype(ms.float32)) + h).sum(-1)


class Several(nn.Cell):
    """Cells with several inputs, keyword inputs, dict and tuple results."""

    class Part(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = nn.Dense(WIDTH, WIDTH)

        def construct(self, x, y, scale=1.0, extra=None):
            h = self.w(x) * scale
            return {"sum": h + y, "same": y, "pair": (h, extra * h)}

    def __init__(self):
        super().__init__()
        self.part = Several.Part()

    def construct(self, x):
        found = self.part(x, x * 2.0, scale=0.5, extra=x)
        again = self.part(found["sum"], found["same"], extra=found["pair"][1])
        return (again["sum"] + again["pair"][0] * again["same"]).sum(-1)


def _train(make, optimizer=nn.Adam, **options):
    def build():
        ms.set_seed(1)
        np.random.seed(1)
        net = make()
        net.set_train()
        update = optimizer(net.trainable_params(), 1e-2, **options)
        data = [(Tensor(_data(i, 6, WIDTH)), Tensor(_data(100 + i, 6))) for i in range(5)]

        def forward(x, y):
            out = net(x)
            return ops.square(out - y).mean() if out.ndim else out

        gradient = ms.value_and_grad(forward, None, update.parameters)

        def step(i):
            loss, gradients = gradient(*data[i % len(data)])
            update(gradients)
            return loss, gradients

        return net, step

    return build


NETS = {
    "chain": _train(
        lambda: nn.SequentialCell(
            nn.Dense(WIDTH, WIDTH), nn.ReLU(), nn.Dense(WIDTH, 1), nn.Flatten()
        )
    ),
    "gated": _train(Gated),
    "four_times": _train(FourTimes, nn.Momentum, momentum=0.9),
    "norms": _train(Norms),
    "views": _train(Views, nn.SGD),
    "shared": _train(Shared),
    "loop": _train(Loop, nn.RMSProp),
    "recomputed": _train(Recomputed),
    "penalty": _train(Penalty),
    "custom": _train(Custom),
    "assigns": _train(Assigns),
    "half": _train(Half),
    "several": _train(Several),
}
