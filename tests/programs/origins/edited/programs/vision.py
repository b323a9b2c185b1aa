# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A vision transformer with stochastic depth, layer scales and mixed targets."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Attention(nn.Cell):
    def __init__(self, d, heads):
        super().__init__()
        self.qkv = nn.Dense(d, 3 * d)
        self.out = nn.Dense(d, d)
        self.heads = heads
        self.d = d

    def construct(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * (d // self.heads) ** -0.5
        p = ops.softmax(scores, -1)
        y = ops.matmul(p, v)
        y = y.swapaxes(1, 2).reshape(b, n, d)
        return self.out(y)


class Block(nn.Cell):
    def __init__(self, d):
        super().__init__()
        self.n1 = nn.LayerNorm((d,))
        self.n2 = nn.LayerNorm((d,))
        self.att = Attention(d, 2)
        self.f1 = nn.Dense(d, 2 * d)
        self.f2 = nn.Dense(2 * d, d)
        self.s1 = Parameter(Tensor(np.ones(d), ms.float32), name="s1")
        self.s2 = Parameter(Tensor(np.ones(d), ms.float32), name="s2")

    def construct(self, x, keep):
        x = x + self.s1 * self.att(self.n1(x)) * keep
        h = self.f2(ops.gelu(self.f1(self.n2(x))))
        x = x + self.s2 * h * keep
        return x


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4, pad_mode="valid", has_bias=True)
        self.token = Parameter(Tensor(np.zeros((1, 1, 8)), ms.float32), name="token")
        self.pos = Parameter(Tensor(np.zeros((1, 10, 8)), ms.float32), name="pos")
        self.blocks = nn.CellList([Block(8), Block(8)])
        self.norm = nn.LayerNorm((8,))
        self.head = nn.Dense(8, 5)

    def construct(self, img, keep):
        x = self.patch(img)
        b, c, h, w = x.shape
        x = x.reshape(b, c, h * w).swapaxes(1, 2)
        t = self.token.broadcast_to((b, 1, 8))
        x = ops.cat((t, x), 1)
        x = x + self.pos
        for i, block in enumerate(self.blocks):
            x = block(x, keep[i].reshape(-1, 1, 1))
        x = self.norm(x)
        return self.head(x[:, 0])


def optimizer(net):
    return nn.AdamWeightDecay(net.trainable_params(), 1e-2)


def loss(net, img, keep, target):
    logits = net(img, keep)
    logp = ops.log_softmax(logits, -1)
    return -(target * logp).sum(-1).mean()


def batch(r):
    img = r.randn(4, 3, 12, 12)
    lam = r.rand()
    y = np.eye(5)[r.randint(0, 5, 4)]
    target = lam * y + (1 - lam) * y[::-1]
    keep = (r.rand(2, 4) > 0.2) / 0.8
    return tuple(Tensor(np.ascontiguousarray(v), ms.float32) for v in (img, keep, target))
