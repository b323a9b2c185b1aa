# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A small training with one large fault of ``probe drill``: ``drilled.py NET FAULT``; "none" is healthy."""

from __future__ import annotations

import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

STEPS, AT = 32, 24
NET, FAULT = sys.argv[1:3]
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(3)
np.random.seed(3)


class Mlp(nn.Cell):
    """Two layers; the batch is noise with a label of its largest element."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(12, 24), nn.Dense(24, 4)

    def construct(self, x):
        return self.last(ops.tanh(self.first(x)))


class Conv(nn.Cell):
    """A convolution over the same numbers as a picture."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 6, 3, has_bias=True), nn.GroupNorm(2, 6)
        self.last = nn.Dense(72, 4)

    def construct(self, x):
        x = ops.gelu(self.norm(self.conv(x.reshape(-1, 1, 3, 4))))
        return self.last(x.reshape(x.shape[0], -1))


class Attention(nn.Cell):
    """Self-attention over four places of three numbers."""

    def __init__(self):
        super().__init__()
        self.enter, self.qkv, self.last = nn.Dense(3, 16), nn.Dense(16, 48), nn.Dense(64, 4)

    def construct(self, x):
        q, k, v = ops.split(self.qkv(self.enter(x.reshape(-1, 4, 3))), 16, -1)
        scores = ops.softmax(ops.matmul(q, k.transpose(0, 2, 1)) / 4.0, -1)
        return self.last(ops.matmul(scores, v).reshape(-1, 64))


class Gated(nn.Cell):
    """A recurrence of four steps, written out."""

    def __init__(self):
        super().__init__()
        self.enter, self.gate, self.last = nn.Dense(19, 16), nn.Dense(19, 16), nn.Dense(16, 4)

    def construct(self, x):
        state = ops.zeros((x.shape[0], 16), ms.float32)
        for part in ops.split(x, 3, 1):
            both = ops.cat((part, state), 1)
            gate = ops.sigmoid(self.gate(both))
            state = gate * state + (1 - gate) * ops.tanh(self.enter(both))
        return self.last(state)


class Residual(nn.Cell):
    """Three blocks with a norm before each."""

    def __init__(self):
        super().__init__()
        self.norms = nn.CellList([nn.LayerNorm((12,)) for _ in range(3)])
        self.blocks = nn.CellList([nn.Dense(12, 12) for _ in range(3)])
        self.last = nn.Dense(12, 4)

    def construct(self, x):
        for norm, block in zip(self.norms, self.blocks):
            x = x + ops.relu(block(norm(x)))
        return self.last(x)


class Mixture(nn.Cell):
    """Two experts, and a gate that weighs them."""

    def __init__(self):
        super().__init__()
        self.gate, self.left, self.right = nn.Dense(12, 2), nn.Dense(12, 4), nn.Dense(12, 4)

    def construct(self, x):
        gate = ops.softmax(self.gate(x), -1)
        return gate[:, :1] * self.left(x) + gate[:, 1:] * self.right(x)


NETS = {
    "mlp": Mlp,
    "conv": Conv,
    "attention": Attention,
    "gated": Gated,
    "residual": Residual,
    "mixture": Mixture,
}


def batch(step):
    x = np.random.default_rng(step).normal(size=(16, 12)).astype(np.float32)
    return Tensor(x), Tensor(x[:, :4].argmax(1).astype(np.int32))


def main():
    net = NETS[NET]()
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    weight = max(net.trainable_params(), key=lambda one: one.size)
    for step in range(STEPS):
        x, y = batch(step)
        if FAULT == "batch" and step == AT:
            x = x * 1000.0  # the fault
        if FAULT == "transposed" and step == AT:
            turned = weight.asnumpy().T.reshape(weight.shape)
            ops.assign(weight, Tensor(np.ascontiguousarray(turned)))  # the fault
        if FAULT == "rate" and step == AT:
            ops.assign(optimizer.learning_rate, Tensor(3.0, ms.float32))  # the fault
        if FAULT == "frozen" and step == AT:
            ops.assign(optimizer.learning_rate, Tensor(0.0, ms.float32))  # the fault
        loss, gradients = gradient(x, y)
        if FAULT == "gradient" and step >= AT:
            gradients = tuple(one * 10000.0 for one in gradients)  # the fault
        if FAULT == "nan" and step == AT:
            gradients = (ops.log(gradients[0] * 0 - 1), *gradients[1:])  # the fault
        optimizer(gradients)
        print(step, float(loss), flush=True)


main()
