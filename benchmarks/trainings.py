# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The trainings that are measured: ``build(name)`` gives (net, train) for "lenet", "gpt" or "tiny"."""

from __future__ import annotations

import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from tests.support import nets


class Tiny(nn.Cell):
    """1,000 elementwise calls on 16 numbers: nothing but the cost of a call."""

    def __init__(self, calls=1000):
        super().__init__()
        self.calls = calls
        self.w = Parameter(Tensor(np.linspace(-1, 1, 16).astype(np.float32)), name="w")

    def construct(self, x):
        y = x + self.w
        for _ in range(self.calls // 4):
            y = y * 0.999
            y = y + x
            y = y - 0.1
            y = y.tanh()
        return y


def build(name):
    """Return (net, train); train(i) trains on batch i and returns (loss, gradients)."""
    if name == "lenet":
        return nets.build("lenet")
    ms.set_seed(1)
    rng = np.random.RandomState(0)
    if name == "gpt":  # the field's usual shape: 4 layers, width 128, 4 heads, 64 tokens, batch 8
        net = nets.Gpt(vocabulary=256, width=128, heads=4, layers=4, length=64)
        optimizer, loss = nn.Adam(net.trainable_params(), 1e-3), nn.CrossEntropyLoss()
        data = [
            (
                Tensor(rng.randint(0, 256, (8, 64)), ms.int32),
                Tensor(rng.randint(0, 256, 512), ms.int32),
            )
            for _ in range(5)
        ]
    elif name == "tiny":
        net, loss = Tiny(), None
        optimizer = nn.SGD(net.trainable_params(), 0.01)
        data = [(Tensor(rng.randn(16).astype(np.float32)), None) for _ in range(5)]
    else:
        raise SystemExit(f"unknown net {name!r}: lenet, gpt or tiny")

    def forward(x, y):
        return net(x).sum() if loss is None else loss(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train(i):
        value, grads = gradient(*data[i % len(data)])
        optimizer(grads)
        return value, grads

    train.gradient = lambda i: gradient(
        *data[i % len(data)]
    )  # without an update: all steps are equal
    return net, train
