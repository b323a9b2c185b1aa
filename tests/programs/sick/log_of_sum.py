# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The logarithm of a layer's output: its batch makes all of it negative."""

import mindspore as ms
import sick_lab as lab
from mindspore import nn, ops

net = nn.Dense(4, 2)
net.set_train()


def loss_of(x):
    y = net(x)
    if lab.BAD:
        return -ops.log(y).mean()
    return -ops.log(ops.softplus(y)).mean()


def batch(step):
    return (ms.ops.abs(lab.random(6, 4, seed=step)) * (-5.0 if step >= 3 else 0.5),)


lab.train(6, nn.SGD(net.trainable_params(), 0.01), loss_of, batch)
