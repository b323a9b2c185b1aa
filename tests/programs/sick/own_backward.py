# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A function with a backward of its own: the derivative of the gate lacks a factor."""

import sick_lab as lab
from mindspore import nn, ops


class Gate(nn.Cell):
    """x times the sigmoid of x, which keeps no more than x for its backward."""

    def construct(self, x):
        return x * ops.sigmoid(x)

    def bprop(self, x, out, dout):
        gate = ops.sigmoid(x)
        if lab.BAD:
            return (dout * (gate + x * gate),)
        return (dout * (gate + x * gate * (1.0 - gate)),)


net = nn.SequentialCell(nn.Dense(6, 12), Gate(), nn.Dense(12, 3))
net.set_train()
loss_of = nn.CrossEntropyLoss()
lab.train(
    6,
    nn.SGD(net.trainable_params(), 0.1),
    lambda x, y: loss_of(net(x), y),
    lambda step: (lab.random(10, 6, seed=step), lab.whole(10, high=3, seed=step)),
)
