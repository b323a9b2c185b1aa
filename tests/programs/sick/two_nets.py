# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two nets whose parameters have equal names; a weight of the second one is scaled before the training."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self, width, wide):
        super().__init__()
        self.first, self.last = nn.Dense(width, 8), nn.Dense(8, wide)

    def construct(self, x):
        return self.last(ops.relu(self.first(x)))


front, back = Net(4, 2), Net(2, 1)
if lab.BAD:
    back.first.weight.set_data(back.first.weight * 3.0)
front.set_train()
back.set_train()
of_front = nn.SGD(front.trainable_params(), 0.1)
of_back = nn.SGD(back.trainable_params(), 0.1)
up = ms.value_and_grad(lambda z: -back(front(z)).mean(), None, of_front.parameters)
down = ms.value_and_grad(
    lambda z, x: back(ops.stop_gradient(front(z))).mean() - back(x).mean(), None, of_back.parameters
)
for step in range(5):
    z, x = lab.random(3, 4, seed=step), ms.Tensor(np.ones((3, 2), np.float32))
    loss, gradients = down(z, x)
    of_back(gradients)
    other, gradients = up(z)
    of_front(gradients)
    print(step, float(loss), float(other))
