# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings that tests dump: ``build(name)`` gives (net, train); ``train(i)`` runs step i."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from tests.support.paths import ROOT

DIGITS = ROOT / "examples" / "data" / "digits.npz"


class LeNet(nn.Cell):
    """A convnet on 32x32 images: few calls, mid-size tensors."""

    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
        )
        self.classifier = nn.SequentialCell(
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)
        )

    def construct(self, x):
        return self.classifier(self.features(x))


class Attention(nn.Cell):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Dense(width, width) for _ in range(4))

    def construct(self, x, mask):
        batch, length, width = x.shape
        split = (batch, length, self.heads, self.size)
        q = self.q(x).reshape(split).transpose(0, 2, 1, 3)
        k = self.k(x).reshape(split).transpose(0, 2, 3, 1)
        v = self.v(x).reshape(split).transpose(0, 2, 1, 3)
        weights = ops.softmax(ops.matmul(q, k) * self.size**-0.5 + mask, -1)
        return self.o(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(batch, length, width))


class Block(nn.Cell):
    """A transformer block: its input is used by two residual sums."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        hidden = self.up(self.norm2(x))
        return x + self.down(hidden * ops.sigmoid(hidden * 1.702))


class Gpt(nn.Cell):
    """A small decoder."""

    def __init__(self, vocabulary=64, width=32, heads=2, layers=2, length=16):
        super().__init__()
        rng = np.random.RandomState(3)
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = Parameter(
            Tensor(rng.randn(length, width).astype(np.float32) * 0.02), name="positions"
        )
        self.blocks = nn.CellList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm((width,)), nn.Dense(width, vocabulary, has_bias=False)
        self.mask = Tensor(np.triu(np.full((length, length), -1e9, np.float32), 1))

    def construct(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x)).reshape(-1, self.vocabulary)


class Digits(nn.Cell):
    """A convnet with BatchNorm for the handwritten digits, 8x8."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, pad_mode="same", has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.AvgPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.hidden, self.out = nn.Dense(128, 32), nn.Dense(32, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.out(ops.tanh(self.hidden(self.flatten(x))))


def digits(batch=32):
    """Return the handwritten digits as a list of (images, labels) tensors."""
    data = np.load(DIGITS)
    images = (data["images"].astype(np.float32) / 16.0)[:, None]
    labels = data["labels"].astype(np.int32)
    return [
        (Tensor(images[i : i + batch]), Tensor(labels[i : i + batch]))
        for i in range(0, len(images) - batch + 1, batch)
    ]


def build(name):
    """Return (net, train) for "lenet", "gpt" or "digits"."""
    ms.set_seed(1)
    np.random.seed(1)
    rng = np.random.RandomState(0)
    loss = nn.CrossEntropyLoss()
    if name == "lenet":
        net = LeNet()
        optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
        x, y = (
            rng.randn(5, 32, 1, 32, 32).astype(np.float32),
            rng.randint(0, 10, (5, 32)).astype(np.int32),
        )
        data = [(Tensor(a), Tensor(b)) for a, b in zip(x, y)]
    elif name == "gpt":
        net = Gpt()
        optimizer = nn.Adam(net.trainable_params(), 1e-3)
        x, y = (
            rng.randint(0, 64, (5, 4, 16)).astype(np.int32),
            rng.randint(0, 64, (5, 64)).astype(np.int32),
        )
        data = [(Tensor(a), Tensor(b)) for a, b in zip(x, y)]
    elif name == "digits":
        net = Digits()
        optimizer = nn.Adam(net.trainable_params(), 1e-2)
        data = digits()
    else:
        raise ValueError(f"unknown net {name!r}: lenet, gpt or digits")

    net.set_train()

    def forward(x, y):
        return loss(net(x), y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)

    def train(i):
        value, grads = gradient(*data[i % len(data)])
        optimizer(grads)
        return value, grads

    return net, train
