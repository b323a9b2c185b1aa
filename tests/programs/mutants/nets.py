# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Nets that no package has: a decoder, an encoder with a GRU head, an LSTM, a generator and its critic."""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class SelfAttention(nn.Cell):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.size, self.causal = heads, width // heads, causal
        self.query = nn.Dense(width, width)
        self.key = nn.Dense(width, width)
        self.value = nn.Dense(width, width)
        self.out = nn.Dense(width, width)
        self.scale = self.size**-0.5

    def construct(self, x):
        batch, length, width = x.shape
        q = self.query(x)
        k = self.key(x)
        v = self.value(x)
        q = q.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)
        k = k.reshape(batch, length, self.heads, self.size).transpose(0, 2, 3, 1)
        v = v.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)
        scores = ops.matmul(q, k) * self.scale
        if self.causal:
            mask = ops.triu(ops.ones((length, length), ms.float32), 1) * -1e9
            scores = scores + mask
        weights = ops.softmax(scores, -1)
        y = ops.matmul(weights, v)
        y = y.transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.out(y)


class Feed(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Dense(width, 4 * width)
        self.down = nn.Dense(4 * width, width)

    def construct(self, x):
        x = self.up(x)
        x = ops.gelu(x, approximate="none")
        return self.down(x)


class Gpt(nn.Cell):
    def __init__(self, vocabulary=40, width=16, heads=2, layers=2, length=8):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        positions = np.random.RandomState(1).randn(length, width).astype(np.float32) * 0.1
        self.positions = Parameter(Tensor(positions), name="positions")
        self.norms1 = nn.CellList([nn.LayerNorm((width,), epsilon=1e-5) for _ in range(layers)])
        self.norms2 = nn.CellList([nn.LayerNorm((width,), epsilon=1e-5) for _ in range(layers)])
        self.attentions = nn.CellList([SelfAttention(width, heads, True) for _ in range(layers)])
        self.feeds = nn.CellList([Feed(width) for _ in range(layers)])
        self.last = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, vocabulary, has_bias=False)
        self.layers = layers

    def construct(self, tokens):
        x = self.tokens(tokens)
        x = x + self.positions
        for i in range(self.layers):
            a = self.norms1[i](x)
            a = self.attentions[i](a)
            x = x + a
            f = self.norms2[i](x)
            f = self.feeds[i](f)
            x = x + f
        x = self.last(x)
        return self.head(x).mean(1)


class Bert(nn.Cell):
    def __init__(self, vocabulary=40, width=16, heads=2, length=8, classes=5):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(length, width)
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = SelfAttention(width, heads, False)
        self.norm_attention = nn.LayerNorm((width,), epsilon=1e-5)
        self.feed = Feed(width)
        self.norm_feed = nn.LayerNorm((width,), epsilon=1e-5)
        self.gru = nn.GRU(width, 12, batch_first=True)
        self.pool = nn.Dense(width, width)
        self.classify = nn.Dense(width + 12, classes)
        self.length = length

    def construct(self, tokens):
        places = ops.arange(0, self.length)
        x = self.word(tokens)
        x = x + self.place(places)
        x = self.norm(x)
        x = self.norm_attention(x + self.attention(x))
        x = self.norm_feed(x + self.feed(x))
        first = x[:, 0]
        pooled = ops.tanh(self.pool(first))
        _, state = self.gru(x)
        last = state[-1]
        both = ops.concat((pooled, last), 1)
        return self.classify(both)


class Lstm(nn.Cell):
    def __init__(self, vocabulary=40, width=10, hidden=12, classes=5):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.hidden = nn.Dense(hidden, hidden)
        self.out = nn.Dense(hidden, classes)

    def construct(self, tokens):
        x = self.embed(tokens)
        y, _ = self.lstm(x)
        last = y[:, -1]
        x = ops.relu(self.hidden(last))
        x = x + last
        return self.out(x)


class Generator(nn.Cell):
    def __init__(self, size=8, width=8):
        super().__init__()
        self.first = nn.Conv2dTranspose(size, 2 * width, 4, 1, pad_mode="valid")
        self.norm1 = nn.BatchNorm2d(2 * width)
        self.second = nn.Conv2dTranspose(2 * width, width, 4, 2, pad_mode="pad", padding=1)
        self.norm2 = nn.BatchNorm2d(width)
        self.third = nn.Conv2dTranspose(width, 3, 4, 2, pad_mode="pad", padding=1)

    def construct(self, z):
        x = ops.relu(self.norm1(self.first(z)))
        x = ops.relu(self.norm2(self.second(x)))
        return ops.tanh(self.third(x))


class Critic(nn.Cell):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 4, 2, pad_mode="pad", padding=1)
        self.second = nn.Conv2d(width, 2 * width, 4, 2, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(2 * width)
        self.out = nn.Conv2d(2 * width, 5, 4, 1, pad_mode="valid")

    def construct(self, x):
        x = ops.leaky_relu(self.first(x), 0.2)
        x = ops.leaky_relu(self.norm(self.second(x)), 0.2)
        x = self.out(x)
        return x.reshape(x.shape[0], -1)


class Dcgan(nn.Cell):
    """The generator and its critic in one step: the critic sees real and made pictures."""

    def __init__(self):
        super().__init__()
        self.generator, self.critic = Generator(), Critic()

    def construct(self, pair):
        made = self.generator(pair[:, :, :1, :1])
        real = pair[:, :3]
        on_real = self.critic(real)
        on_made = self.critic(made)
        return on_real - on_made * 0.5
