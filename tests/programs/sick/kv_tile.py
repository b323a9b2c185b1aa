# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two heads of keys serve four heads of queries: tiled where each should be repeated beside itself."""

import sick_lab as lab
from mindspore import nn, ops


class Grouped(nn.Cell):
    def __init__(self, width=16, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query, self.key = nn.Dense(width, width), nn.Dense(width, groups * self.size)
        self.value, self.out = nn.Dense(width, groups * self.size), nn.Dense(width, width)

    def split(self, x, heads):
        return x.reshape(x.shape[0], x.shape[1], heads, self.size).transpose(0, 2, 1, 3)

    def spread(self, x):
        times = self.heads // self.groups
        if lab.BAD:
            return x.tile((1, times, 1, 1))
        return x.repeat_interleave(times, 1)

    def construct(self, x):
        q = self.split(self.query(x), self.heads)
        k, v = (
            self.spread(self.split(self.key(x), self.groups)),
            self.spread(self.split(self.value(x), self.groups)),
        )
        weights = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) / self.size**0.5, -1)
        return self.out(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(x.shape))


class Words(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.attend, self.head = nn.Embedding(40, 16), Grouped(), nn.Dense(16, 40)

    def construct(self, ids):
        x = self.embed(ids)
        return self.head(x + self.attend(x))


net = Words()


def loss_of(ids):
    return ops.cross_entropy(net(ids)[:, :-1].reshape(-1, 40), ids[:, 1:].reshape(-1))


lab.train(
    6,
    nn.Adam(net.trainable_params(), 0.003),
    loss_of,
    lambda step: (lab.whole(4, 10, high=40, seed=step),),
)
