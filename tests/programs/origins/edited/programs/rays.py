# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A radiance field: samples of rays are encoded, weighted by transmittance, and summed up."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops


class Field(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a = nn.Dense(12, 16)
        self.b = nn.Dense(16, 16)
        self.sigma = nn.Dense(16, 1)
        self.rgb = nn.Dense(19, 3)

    def construct(self, p, d):
        h = ops.relu(self.b(ops.relu(self.a(p))))
        sigma = ops.relu(self.sigma(h) + 0.5)
        rgb = ops.sigmoid(self.rgb(ops.cat((h, d), -1)))
        return sigma, rgb


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.field = Field()
        self.freq = Tensor([1.0, 2.0], ms.float32)

    def encode(self, x):
        angles = x.expand_dims(-1) * self.freq
        parts = ops.cat((ops.sin(angles), ops.cos(angles)), -1)
        return parts.reshape(*x.shape[:-1], 12)

    def construct(self, origin, direction, t):
        unit = direction / ops.sqrt(ops.square(direction).sum(-1, keepdims=True))
        points = origin.expand_dims(1) + t.expand_dims(-1) * unit.expand_dims(1)
        dirs = unit.expand_dims(1).broadcast_to(points.shape)
        sigma, rgb = self.field(self.encode(points), dirs)
        delta = ops.cat((t[:, 1:] - t[:, :-1], ops.full((t.shape[0], 1), 0.2, dtype=ms.float32)), 1)
        alpha = 1 - ops.exp(-sigma.squeeze(-1) * delta)
        trans = ops.cumprod(1 - alpha + 1e-10, dim=1)
        trans = ops.cat((ops.ones((t.shape[0], 1), ms.float32), trans[:, :-1]), 1)
        weight = alpha * trans
        color = (weight.expand_dims(-1) * rgb).sum(1)
        depth = (weight * t).sum(1)
        return color, depth, weight


def optimizer(net):
    return nn.Adam(net.trainable_params(), 5e-3)


def loss(net, origin, direction, t, gold):
    color, depth, weight = net(origin, direction, t)
    mse = ((color - gold) ** 2).mean()
    p = weight / (weight.sum(1, keepdims=True) + 1e-6)
    ent = -(p * ops.log(p + 1e-6)).sum(1).mean()
    return mse + 0.1 * ent + 0.01 * ops.abs(depth - 2).mean()


def batch(r):
    t = np.sort(r.rand(5, 6) * 3, 1)
    return tuple(Tensor(v, ms.float32) for v in (r.randn(5, 3), r.randn(5, 3), t, r.rand(5, 3)))
