# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The schedule is advanced after each of two micro-batches, not after each update."""

import mindspore as ms
import sick_lab as lab
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Dense(10, 20), nn.Dense(20, 1)

    def construct(self, x):
        return self.two(ops.relu(self.one(x)))


class Decay:
    """A rate that falls by a tenth whenever it is told to."""

    def __init__(self, optimizer):
        self.optimizer, self.rate = optimizer, 0.02

    def advance(self):
        self.rate *= 0.9
        ops.assign(self.optimizer.learning_rate, ms.Tensor(self.rate, ms.float32))


net = Net()
optimizer = nn.Adam(net.trainable_params(), 0.02)
schedule = Decay(optimizer)
gradient = ms.value_and_grad(lambda x, y: ops.mse_loss(net(x), y) / 2, None, optimizer.parameters)
for step in range(6):
    total = None
    for part in range(2):
        loss, gradients = gradient(
            lab.random(8, 10, seed=2 * step + part), lab.random(8, 1, seed=70 + 2 * step + part)
        )
        total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
        if lab.BAD:
            schedule.advance()
    optimizer(tuple(total))
    if not lab.BAD:
        schedule.advance()
    print(step, float(loss))
