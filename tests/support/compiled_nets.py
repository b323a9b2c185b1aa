# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nets with values that a compiled graph treats in a way of its own. ``NETS[name]()`` is a net of one input."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

WIDTH = 8


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(WIDTH, WIDTH)

    def construct(self, x):
        return ops.tanh(self.dense(x))


class Branches(nn.Cell):
    """A branch that depends on values, and a loop that depends on values."""

    def __init__(self):
        super().__init__()
        self.yes, self.no, self.again = Inner(), Inner(), Inner()

    def construct(self, x):
        if x.sum() > 0:
            x = self.yes(x)
        else:
            x = self.no(x)
        count = Tensor(0, ms.int32)
        while count < 3:
            x = self.again(x)
            count = count + 1
        return x.sum()


class Many(nn.Cell):
    """A loop over Cells, and a Cell that is called twice."""

    def __init__(self):
        super().__init__()
        self.twice = Inner()
        self.many = nn.CellList([Inner(), Inner(), Inner()])

    def construct(self, x):
        for cell in self.many:
            x = cell(x)
        return (self.twice(x) + self.twice(x * 0.5)).sum()


class Sizes(nn.Cell):
    """A Cell that is called with three shapes, and a Cell that is called with two dtypes."""

    def __init__(self):
        super().__init__()
        self.shapes, self.dtypes = Inner(), Bend()

    def construct(self, x):
        shapes = self.shapes(x).sum() + self.shapes(x[:1]).sum() + self.shapes(x[:2] * 0.5).sum()
        return (
            shapes
            + self.dtypes(x).sum()
            + ops.cast(self.dtypes(ops.cast(x, ms.float16)), ms.float32).sum()
        )


class Bend(nn.Cell):
    def construct(self, x):
        return ops.tanh(x) * x


class To(nn.Cell):
    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def construct(self, x, scale=1, flag=None):
        return ops.cast(x, self.dtype)


class Brain(nn.Cell):
    """bfloat16 between Cells, and keyword arguments that are no tensors."""

    def __init__(self):
        super().__init__()
        self.dense, self.low, self.up = nn.Dense(WIDTH, WIDTH), To(ms.bfloat16), To(ms.float32)

    def construct(self, x):
        return self.up(self.low(self.dense(x), flag=True)).sum()


class Scale(nn.Cell):
    def construct(self, x, scale):
        return x.sum() * scale


class Scalars(nn.Cell):
    """Tensors without dimensions."""

    def __init__(self):
        super().__init__()
        self.dense, self.first, self.second = nn.Dense(WIDTH, WIDTH), Scale(), Scale()

    def construct(self, x):
        return self.second(x, self.first(self.dense(x), 2.0))


class Head(nn.Cell):
    def construct(self, x):
        return ops.stop_gradient(x)[:0], x * 1.5


class Empties(nn.Cell):
    """An empty tensor."""

    def __init__(self):
        super().__init__()
        self.dense, self.head, self.up = nn.Dense(WIDTH, WIDTH), Head(), To(ms.float32)

    def construct(self, x):
        _, x = self.head(self.dense(x))
        return x.sum()


class Chosen(nn.Cell):
    def construct(self, x):
        return ops.gather(x.reshape(-1), ops.nonzero(x > 0)[:, 0], 0)


class Unknown(nn.Cell):
    """The size of one tensor depends on values."""

    def __init__(self):
        super().__init__()
        self.dense, self.chosen, self.last = (
            nn.Dense(WIDTH, WIDTH),
            Chosen(),
            nn.Dense(WIDTH, WIDTH),
        )

    def construct(self, x):
        x = self.dense(x)
        return self.chosen(x).sum() + self.last(x).sum()


class Own(nn.Cell):
    """A backward that is no derivative."""

    def construct(self, x):
        return ops.relu(x)

    def bprop(self, x, out, dout):
        return (dout * 0.5,)


class Owns(nn.Cell):
    """A Cell with a backward of its own, and a tensor that is used inside of a Cell and outside."""

    def __init__(self):
        super().__init__()
        self.inner, self.own, self.last = Inner(), Own(), Bend()

    def construct(self, x):
        x = self.own(self.inner(x))
        return (x + self.last(x) - x * x).sum()


class Normed(nn.Cell):
    """A graph that changes parameters in its forward, and a tensor with several uses."""

    def __init__(self):
        super().__init__()
        self.dense, self.norm, self.inner = nn.Dense(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), Inner()

    def construct(self, x):
        x = self.norm(self.dense(x))
        return (self.inner(x) + ops.sin(x) * 3.0).sum()


NETS = {
    "normed": Normed,
    "owns": Owns,
    "branches": Branches,
    "many": Many,
    "sizes": Sizes,
    "brain": Brain,
    "scalars": Scalars,
    "empties": Empties,
    "unknown": Unknown,
}


def build(name):
    """Return (net, step): ``step(i)`` trains on batch i and returns (loss, gradients)."""
    ms.set_seed(1)
    np.random.seed(1)
    net = NETS[name]()
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    data = [Tensor(np.random.RandomState(i).randn(4, WIDTH).astype(np.float32)) for i in range(5)]

    def forward(x):
        return net(x)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(i):
        loss, gradients = gradient(data[i])
        optimizer(gradients)
        return loss, gradients

    return net, step
