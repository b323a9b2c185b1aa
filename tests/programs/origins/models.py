# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings with one planted change each: ``train(change, ...)`` runs one under a debugger.

Every change is one ``if``, so that the lines of both runs are the same.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from probe.config.config_file import ConfigFile
from probe.launch.perturb import Perturbation
from tests.support import nets

STEPS = 2


def causal_mask(length, shift):
    """Return -1e9 above the diagonal, which ``shift`` moves."""
    return Tensor(np.triu(np.full((length, length), -1e9, np.float32), 1 + shift))


class Attention(nn.Cell):
    """Causal self-attention with several heads."""

    def __init__(self, width, heads, change):
        super().__init__()
        self.heads, self.size, self.change = heads, width // heads, change
        self.q, self.k, self.v, self.o = (nn.Dense(width, width) for _ in range(4))

    def construct(self, x, mask):
        batch, length, width = x.shape
        split = (batch, length, self.heads, self.size)
        if self.change == "q and k in the other order":
            k = self.k(x).reshape(split).transpose(0, 2, 3, 1)
            q = self.q(x).reshape(split).transpose(0, 2, 1, 3)
        elif self.change == "q and k swapped":
            q = self.k(x).reshape(split).transpose(0, 2, 1, 3)
            k = self.q(x).reshape(split).transpose(0, 2, 3, 1)
        else:
            q = self.q(x).reshape(split).transpose(0, 2, 1, 3)
            k = self.k(x).reshape(split).transpose(0, 2, 3, 1)
        v = self.v(x).reshape(split).transpose(0, 2, 1, 3)
        if self.change == "identity calls":
            v = (v * 1.0).reshape(v.shape)
        scale = 1 / self.size if self.change == "scale" else self.size**-0.5
        scores = ops.matmul(q, k) * scale + mask
        if self.change == "bfloat16 cast":
            scores = scores.astype(ms.bfloat16).astype(ms.float32)
        weights = ops.softmax(scores, 2 if self.change == "axis" else -1)
        if self.change == "stop_gradient":
            weights = ops.stop_gradient(weights)
        merged = ops.matmul(weights, v).transpose(0, 2, 1, 3)
        if self.change == "reshape with -1":
            return self.o(merged.reshape(batch, length, -1))
        return self.o(merged.reshape(batch, length, width))


class Scaled(nn.Cell):
    """Passes its input on, and gives a gradient of its own for it."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def construct(self, x):
        return x * 1.0

    def bprop(self, x, out, dout):
        return (dout * self.factor,)


class Block(nn.Cell):
    """A transformer block."""

    def __init__(self, width, heads, change):
        super().__init__()
        self.change = change
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-3 if change == "epsilon" else 1e-7)
        self.norm2 = nn.LayerNorm((width,))
        self.attention = Attention(width, heads, change)
        self.up = nn.Dense(width, 4 * width)
        if change == "renamed Cell":
            self.fc2 = nn.Dense(4 * width, width)
        elif change == "wrapper Cell":
            self.wrapped = nn.SequentialCell(nn.Dense(4 * width, width))
        else:
            self.down = nn.Dense(4 * width, width)
        self.pass_on = Scaled(2.0 if change == "wrong bprop" else 1.0)

    def construct(self, x, mask):
        attended = self.attention(self.norm1(x), mask)
        x = attended + x if self.change == "operands swapped" else x + attended
        hidden = self.up(self.norm2(x))
        if self.change == "other activation":
            hidden = ops.relu(hidden)
        elif self.change == "other spelling":
            hidden = ops.mul(hidden, ops.sigmoid(hidden))
        else:
            hidden = hidden * ops.sigmoid(hidden)
        if self.change == "renamed Cell":
            out = self.fc2(hidden)
        elif self.change == "wrapper Cell":
            out = self.wrapped(hidden)
        else:
            out = self.down(hidden)
        return x + self.pass_on(out)


class Gpt(nn.Cell):
    """A small decoder; the change is in its second block."""

    def __init__(self, change, vocabulary=64, width=32, heads=2, layers=2, length=16):
        super().__init__()
        self.vocabulary, self.change = vocabulary, change
        self.tokens = nn.Embedding(vocabulary, width)
        rng = np.random.RandomState(3)
        self.positions = Parameter(
            Tensor(rng.randn(length, width).astype(np.float32) * 0.02), name="positions"
        )
        self.blocks = nn.CellList(
            [Block(width, heads, change if i == 1 else "") for i in range(layers)]
        )
        self.norm, self.head = nn.LayerNorm((width,)), nn.Dense(width, vocabulary, has_bias=False)
        self.masks = [causal_mask(length, int(change == "mask" and i == 1)) for i in range(layers)]

    def construct(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block, mask in zip(self.blocks, self.masks):
            x = block(x, mask)
        return self.head(self.norm(x)).reshape(-1, self.vocabulary)


class Digits(nn.Cell):
    """A convnet with BatchNorm and Dropout."""

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.conv = nn.Conv2d(1, 8, 3, pad_mode="same", has_bias=True)
        self.norm = nn.BatchNorm2d(8, eps=1e-2 if change == "BatchNorm epsilon" else 1e-5)
        self.pool = nn.MaxPool2d(2, 2) if change == "other pooling" else nn.AvgPool2d(2, 2)
        self.flatten, self.drop = nn.Flatten(), nn.Dropout(p=0.3)
        self.hidden, self.out = nn.Dense(128, 32), nn.Dense(32, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        x = self.drop(self.flatten(x))
        return self.out(ops.tanh(self.hidden(x)))


def of_gpt(change):
    """Return (net, data, learning rate, weight decay)."""
    net = Gpt(change)
    rng = np.random.RandomState(0)
    x, y = (
        rng.randint(0, 64, (5, 4, 16)).astype(np.int32),
        rng.randint(0, 64, (5, 64)).astype(np.int32),
    )
    if change == "other batch":
        x = x[::-1].copy()
    if change == "batch in another order":
        x = x[:, ::-1].copy()
    if change == "labels are the inputs":
        y = x.reshape(5, 64).copy()
    if change == "weight transposed":
        weight = net.blocks[1].attention.v.weight
        weight.set_data(Tensor(np.ascontiguousarray(weight.asnumpy().T)))
    if change == "one weight":
        weight = net.blocks[1].norm2.gamma
        weight.set_data(weight * 1.01)
    return net, [(Tensor(a), Tensor(b)) for a, b in zip(x, y)]


def of_digits(change):
    """Return (net, data)."""
    net, data = Digits(change), nets.digits()
    if change == "normalisation":
        data = [(x * 16 / 15, y) for x, y in data[:STEPS]]
    if change == "initial weights":
        weight = net.conv.weight
        weight.set_data(weight * 1.25)
    return net, data


def add_noise(net, noise, debugger=None):
    """Change every weight by a relative noise; below zero by one rounding, as ``probe run --perturb`` does."""
    if noise < 0:
        source = ConfigFile(None) if debugger is None else debugger._session.source
        Perturbation("parameters", source, int(-noise)).parameters(net.get_parameters())
        return
    rng = np.random.RandomState(7)
    for parameter in net.get_parameters():
        value = parameter.asnumpy()
        if value.dtype == np.float32:
            parameter.set_data(
                Tensor(value * (1 + noise * rng.randn(*value.shape)).astype(np.float32))
            )


def train(kind, change, debugger, noise=0.0, steps=STEPS):
    """Train a net under a debugger."""
    ms.set_seed(2 if change == "dropout seed" else 1)
    np.random.seed(1)
    net, data = (of_gpt if kind == "gpt" else of_digits)(change)
    if change == "dropout seed":  # the weights are those of the other run
        ms.set_seed(1)
        np.random.seed(1)
        for parameter, other in zip(net.get_parameters(), of_digits("")[0].get_parameters()):
            parameter.set_data(other)
        ms.set_seed(2)
    if noise:
        add_noise(net, noise, debugger)
    net.set_train()
    rate = 2e-3 if change == "learning rate" else 1e-3
    decay = 0.1 if change == "weight decay" else 0.0
    optimizer = nn.AdamWeightDecay(net.trainable_params(), rate, weight_decay=decay)
    loss = nn.CrossEntropyLoss()
    sens = Tensor(2.0 if change == "loss scale" else 1.0, ms.float32)

    def forward(x, y):
        return loss(net(x), y)

    grad = ops.GradOperation(get_by_list=True, sens_param=True)(forward, optimizer.parameters)
    for i in range(steps):
        debugger.start(net)
        gradients = grad(*data[i], sens)
        if change != "no clipping":
            gradients = ops.clip_by_global_norm(gradients, 0.5)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
