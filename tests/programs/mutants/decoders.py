# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Decoders as large language models have them: one like LLaMA, and a mixture of experts.

``spots.py`` names places in this file by their text.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class RmsNorm(nn.Cell):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.weight = Parameter(ops.ones((width,), ms.float32), name="weight")
        self.eps = eps

    def construct(self, x):
        square = ops.mean(ops.square(x), -1, True)
        return x * ops.rsqrt(square + self.eps) * self.weight


class Rotary(nn.Cell):
    def __init__(self, size):
        super().__init__()
        self.rates = Tensor((100.0 ** (-np.arange(0, size, 2) / size)).astype(np.float32))

    def construct(self, positions):
        places = ops.cast(positions, ms.float32)
        angles = ops.expand_dims(places, -1) * self.rates
        return ops.cos(angles), ops.sin(angles)


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return ops.concat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Cell):
    """Attention in which two heads share one head of keys and values."""

    def __init__(self, width, heads, shared):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.q_proj = nn.Dense(width, width, has_bias=False)
        self.k_proj = nn.Dense(width, shared * self.size, has_bias=False)
        self.v_proj = nn.Dense(width, shared * self.size, has_bias=False)
        self.o_proj = nn.Dense(width, width, has_bias=False)
        self.rotary = Rotary(self.size)

    def construct(self, x, positions, mask):
        batch, length, width = x.shape
        q = self.q_proj(x).reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)
        k = self.k_proj(x).reshape(batch, length, self.shared, self.size).transpose(0, 2, 1, 3)
        v = self.v_proj(x).reshape(batch, length, self.shared, self.size).transpose(0, 2, 1, 3)
        cos, sin = self.rotary(positions)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)
        keys = ops.repeat_interleave(k, self.heads // self.shared, 1)
        values = ops.repeat_interleave(v, self.heads // self.shared, 1)
        scores = ops.matmul(q, keys.transpose(0, 1, 3, 2)) / self.size**0.5
        scores = scores + mask
        weights = ops.softmax(scores, -1)
        y = ops.matmul(weights, values)
        y = y.transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.o_proj(y)


class Gated(nn.Cell):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = nn.Dense(width, inner, has_bias=False)
        self.up_proj = nn.Dense(width, inner, has_bias=False)
        self.down_proj = nn.Dense(inner, width, has_bias=False)

    def construct(self, x):
        gate = self.gate_proj(x)
        up = self.up_proj(x)
        return self.down_proj(ops.silu(gate) * up)


class Router(nn.Cell):
    def __init__(self, width, experts):
        super().__init__()
        self.score = nn.Dense(width, experts, has_bias=False)

    def construct(self, x):
        logits = self.score(x)
        shares = ops.softmax(logits, -1)
        weight, index = ops.topk(shares, 2)
        weight = weight / ops.sum(weight, -1, True)
        return weight, index


class Experts(nn.Cell):
    def __init__(self, width, experts, inner):
        super().__init__()
        self.count = experts
        self.router = Router(width, experts)
        self.experts = nn.CellList([Gated(width, inner) for _ in range(experts)])

    def construct(self, x):
        weight, index = self.router(x)
        total = ops.zeros_like(x)
        for place in range(self.count):
            chosen = ops.cast(ops.equal(index, place), ms.float32)
            share = ops.sum(weight * chosen, -1, True)
            total = total + share * self.experts[place](x)
        return total


class Layer(nn.Cell):
    def __init__(self, width, heads, shared, experts):
        super().__init__()
        self.input_norm = RmsNorm(width)
        self.attention = Attention(width, heads, shared)
        self.post_norm = RmsNorm(width)
        self.feed = Experts(width, experts, 2 * width) if experts else Gated(width, 2 * width)

    def construct(self, x, positions, mask):
        x = x + self.attention(self.input_norm(x), positions, mask)
        x = x + self.feed(self.post_norm(x))
        return x


class Decoder(nn.Cell):
    """Classifies a text by its last token that is no padding; token 0 is padding."""

    def __init__(self, experts=0, width=32, heads=4, shared=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(40, width)
        self.layers = nn.CellList([Layer(width, heads, shared, experts) for _ in range(layers)])
        self.norm = RmsNorm(width)
        self.head = nn.Dense(width, 5, has_bias=False)

    def construct(self, tokens):
        length = tokens.shape[1]
        positions = ops.arange(0, length)
        causal = ops.triu(ops.ones((length, length), ms.float32), 1)
        padding = ops.cast(ops.equal(tokens, 0), ms.float32)
        mask = (causal + padding.reshape(-1, 1, 1, length)) * -1e9
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, positions, mask)
        x = self.norm(x)
        last = x[:, -1]
        logits = self.head(last)
        return logits


class OwnAdam:
    """An optimizer as users write it: functions on tensors, its moments are lists."""

    def __init__(self, parameters, rate=1e-3, decay=0.01):
        self.parameters, self.rate, self.decay, self.count = parameters, rate, decay, 0
        self.first = [ops.zeros_like(parameter) for parameter in parameters]
        self.second = [ops.zeros_like(parameter) for parameter in parameters]

    def __call__(self, gradients):
        self.count += 1
        for place, (parameter, gradient) in enumerate(zip(self.parameters, gradients)):
            self.first[place] = 0.9 * self.first[place] + 0.1 * gradient
            self.second[place] = 0.95 * self.second[place] + 0.05 * ops.square(gradient)
            mean = self.first[place] / (1 - 0.9**self.count)
            square = self.second[place] / (1 - 0.95**self.count)
            step = mean / (ops.sqrt(square) + 1e-8) + self.decay * parameter
            ops.assign(parameter, parameter - self.rate * step)
