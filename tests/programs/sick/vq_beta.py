# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A quantizer weighs the wrong one of its two losses: values are equal, gradients are not."""

import sick_lab as lab
from mindspore import nn, ops


class Book(nn.Cell):
    def __init__(self, codes=12, width=6):
        super().__init__()
        self.codes = nn.Embedding(codes, width, embedding_table="normal")

    def construct(self, z):
        far = ((z.expand_dims(1) - self.codes.embedding_table) ** 2).sum(-1)
        near = self.codes(far.argmin(-1))
        commit = ((ops.stop_gradient(near) - z) ** 2).mean()
        follow = ((near - ops.stop_gradient(z)) ** 2).mean()
        if lab.BAD:
            loss = commit + follow * 0.25
        else:
            loss = follow + commit * 0.25
        return z + ops.stop_gradient(near - z), loss


class Coder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.down, self.book, self.up = nn.Dense(16, 6), Book(), nn.Dense(6, 16)

    def construct(self, x):
        code, loss = self.book(ops.tanh(self.down(x)))
        return self.up(code), loss


net = Coder()


def loss_of(x):
    y, extra = net(x)
    return ops.mse_loss(y, x) + extra


lab.train(
    6, nn.Adam(net.trainable_params(), 0.01), loss_of, lambda step: (lab.random(32, 16, seed=step),)
)
