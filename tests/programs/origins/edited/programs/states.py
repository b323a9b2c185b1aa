# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A state-space model that scans the time, with a focal loss and a loss of boxes."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Mixer(nn.Cell):
    def __init__(self, d, s):
        super().__init__()
        self.inp = nn.Dense(d, 2 * d)
        self.bc = nn.Dense(d, 2 * s)
        self.dt = nn.Dense(d, d)
        self.out = nn.Dense(d, d)
        self.a = Parameter(Tensor(np.zeros((d, s)), ms.float32), name="a_log")
        self.skip = Parameter(Tensor(np.ones(d), ms.float32), name="skip")
        self.s = s

    def construct(self, x):
        u, z = ops.chunk(self.inp(x), 2, -1)
        u = ops.silu(u)
        b, c = ops.chunk(self.bc(u), 2, -1)
        dt = ops.softplus(self.dt(u))
        a = -ops.exp(self.a)
        h = ops.zeros((x.shape[0], x.shape[2], self.s), ms.float32)
        ys = []
        for t in range(x.shape[1]):
            decay = ops.exp(dt[:, t].expand_dims(-1) * a)
            h = decay * h + (dt[:, t] * u[:, t]).expand_dims(-1) * b[:, t].expand_dims(1)
            ys.append((h * c[:, t].expand_dims(1)).sum(-1))
        y = ops.stack(ys, 1) + u * self.skip
        y = y * ops.silu(z)
        return self.out(y)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 6)
        self.n1 = nn.RMSNorm((6,)) if hasattr(nn, "RMSNorm") else nn.LayerNorm((6,))
        self.m1 = Mixer(6, 3)
        self.n2 = nn.LayerNorm((6,))
        self.m2 = Mixer(6, 3)
        self.box = nn.Dense(6, 4)
        self.cls = nn.Dense(6, 7)

    def construct(self, tokens, mask):
        x = self.emb(tokens) * mask.expand_dims(-1)
        x = x + self.m1(self.n1(x))
        x = x + self.m2(self.n2(x))
        pooled = (x * mask.expand_dims(-1)).sum(1) / mask.sum(1, keepdims=True)
        return self.cls(x), ops.sigmoid(self.box(pooled))


def focal(logits, target, gamma):
    logp = ops.log_softmax(logits, -1)
    lp = ops.gather_elements(logp, 2, target.expand_dims(-1)).squeeze(-1)
    return -((1 - ops.exp(lp)) ** gamma) * lp


def iou(p, g):
    lo = ops.maximum(p[:, :2] - p[:, 2:] / 2, g[:, :2] - g[:, 2:] / 2)
    hi = ops.minimum(p[:, :2] + p[:, 2:] / 2, g[:, :2] + g[:, 2:] / 2)
    inter = ops.clamp(hi - lo, 0.0).prod(-1)
    union = p[:, 2:].prod(-1) + g[:, 2:].prod(-1) - inter
    return inter / (union + 1e-6)


def optimizer(net):
    return nn.Momentum(net.trainable_params(), 0.1, 0.9)


def loss(net, tokens, mask, target, gold):
    logits, box = net(tokens, mask)
    f = (focal(logits, target, 2.0) * mask).sum() / mask.sum()
    l1 = ops.smooth_l1_loss(box, gold, beta=0.1, reduction="mean")
    return f + 0.5 * l1 + (1 - iou(box, gold)).mean()


def batch(r):
    mask = (np.arange(5) < r.randint(2, 6, (4, 1))).astype(np.float32)
    return (
        Tensor(r.randint(0, 7, (4, 5)), ms.int32),
        Tensor(mask),
        Tensor(r.randint(0, 7, (4, 5)), ms.int32),
        Tensor(r.rand(4, 4) * 0.5 + 0.25, ms.float32),
    )
