# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A column of predictions is subtracted from a row of targets: each one meets all of them."""

import sick_lab as lab
from mindspore import nn, ops

net = nn.SequentialCell(nn.Dense(5, 12), nn.Tanh(), nn.Dense(12, 1))
net.set_train()


def loss_of(x, y):
    found = net(x)
    if not lab.BAD:
        y = y.reshape(-1, 1)
    return ops.square(found - y).mean()


def batch(step):
    x = lab.random(16, 5, seed=step)
    return x, x[:, 0] * 2.0 - x[:, 1]


lab.train(6, nn.Adam(net.trainable_params(), 0.02), loss_of, batch)
