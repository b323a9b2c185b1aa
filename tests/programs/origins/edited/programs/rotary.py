# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A decoder with rotary positions, grouped queries, a gated layer, and a head tied to the table."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

W, H, G = 12, 3, 1
D = W // H


class Norm(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.gamma = Parameter(Tensor(np.ones(width), ms.float32), name="gamma")

    def construct(self, x):
        power = ops.mean(ops.square(x), -1, keep_dims=True)
        return x * ops.rsqrt(power + 1e-6) * self.gamma


def angles(length, size):
    rate = 1.0 / 100.0 ** (np.arange(0, size, 2) / size)
    turn = np.outer(np.arange(length), rate)
    return Tensor(np.cos(turn), ms.float32), Tensor(np.sin(turn), ms.float32)


def rotate(x, cos, sin):
    even = x[..., 0::2]
    odd = x[..., 1::2]
    first = even * cos - odd * sin
    second = even * sin + odd * cos
    return ops.stack((first, second), -1).reshape(x.shape)


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.query = nn.Dense(W, W, has_bias=False)
        self.key = nn.Dense(W, G * D, has_bias=False)
        self.value = nn.Dense(W, G * D, has_bias=False)
        self.out = nn.Dense(W, W, has_bias=False)

    def construct(self, x, mask):
        b, n, _ = x.shape
        cos, sin = angles(n, D)
        q = self.query(x).reshape(b, n, H, D).swapaxes(1, 2)
        k = self.key(x).reshape(b, n, G, D).swapaxes(1, 2)
        v = self.value(x).reshape(b, n, G, D).swapaxes(1, 2)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)
        k = k.repeat_interleave(H // G, 1)
        v = v.repeat_interleave(H // G, 1)
        score = ops.matmul(q, k.swapaxes(-1, -2)) / D**0.5
        score = score.masked_fill(mask, -1e4)
        share = ops.softmax(score, -1)
        y = ops.matmul(share, v).swapaxes(1, 2).reshape(b, n, W)
        return self.out(y)


class Gated(nn.Cell):
    def __init__(self, inner=20):
        super().__init__()
        self.up = nn.Dense(W, inner, has_bias=False)
        self.gate = nn.Dense(W, inner, has_bias=False)
        self.down = nn.Dense(inner, W, has_bias=False)

    def construct(self, x):
        return self.down(ops.silu(self.gate(x)) * self.up(x))


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.n1 = Norm(W)
        self.attend = Attention()
        self.n2 = Norm(W)
        self.feed = Gated()

    def construct(self, x, mask):
        x = x + self.attend(self.n1(x), mask)
        x = x + self.feed(self.n2(x))
        return x


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, W)
        self.blocks = nn.CellList([Block(), Block()])
        self.last = Norm(W)

    def construct(self, ids):
        n = ids.shape[1]
        mask = ops.triu(ops.ones((n, n), ms.float32), 1).bool()
        x = self.table(ids) * W**0.5
        for block in self.blocks:
            x = block(x, mask)
        x = self.last(x)
        return ops.matmul(x, self.table.embedding_table.T)


def optimizer(net):
    slow = [p for p in net.trainable_params() if "gamma" in p.name]
    rest = [p for p in net.trainable_params() if "gamma" not in p.name]
    groups = [{"params": rest, "weight_decay": 0.01}, {"params": slow, "weight_decay": 0.0}]
    return nn.AdamWeightDecay(groups, 0.01, eps=1e-6)


def grads(gradients):
    total = sum((g.astype(ms.float32) ** 2).sum() for g in gradients)
    norm = ops.sqrt(total)
    factor = ops.clamp(1.0 / (norm + 1e-6), max=1.0)
    return tuple(g * factor for g in gradients)


def loss(net, ids, labels, known):
    logits = net(ids)
    logp = ops.log_softmax(logits, -1)
    own = ops.gather_elements(logp, 2, labels.expand_dims(-1)).squeeze(-1)
    smooth = logp.mean(-1)
    each = -(0.9 * own + 0.1 * smooth)
    main = (each * known).sum() / known.sum()
    z = ops.logsumexp(logits, -1)
    return main + 1e-3 * (z**2 * known).sum() / known.sum()


def batch(r):
    ids = r.randint(0, 11, (3, 7))
    known = (np.arange(6) < r.randint(3, 7, (3, 1))).astype(np.float32)
    return Tensor(ids[:, :-1], ms.int32), Tensor(ids[:, 1:], ms.int32), Tensor(known)
