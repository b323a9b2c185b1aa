# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A sampler makes its order from its seed and the number of the pass, and nobody tells it the pass."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops

ROWS, SIZE = 32, 8
X, Y = lab.random(ROWS, 10).asnumpy(), lab.random(ROWS, 1, seed=5).asnumpy()


class Sampler:
    def __init__(self, seed=11):
        self.seed, self.number = seed, 0

    def set_epoch(self, number):
        self.number = number

    def __iter__(self):
        order = np.random.default_rng(self.seed + self.number).permutation(ROWS)
        return iter(order.reshape(-1, SIZE))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Dense(10, 20), nn.Dense(20, 1)

    def construct(self, x):
        return self.two(ops.relu(self.one(x)))


net, sampler = Net(), Sampler()
optimizer = nn.Adam(net.trainable_params(), 0.01)
gradient = ms.value_and_grad(lambda x, y: ops.mse_loss(net(x), y), None, optimizer.parameters)
for number in range(3):
    if not lab.BAD:
        sampler.set_epoch(number)
    for rows in sampler:
        loss, gradients = gradient(ms.Tensor(X[rows]), ms.Tensor(Y[rows]))
        optimizer(gradients)
        print(number, float(loss))
