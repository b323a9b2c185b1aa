# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings of the tests: each is the text of a program."""

from __future__ import annotations

#: a training whose line FAULT has a place for a fault; it writes a file in its working folder
TRAINING = """
import sys
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(3)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(6, 8), nn.Dense(8, 3)

    def construct(self, x):
        x = ops.tanh(self.first(x))
        FAULT
        return self.last(x)


net = Net()
net.set_train()
optimizer = nn.SGD(net.trainable_params(), 0.1)
loss_of = nn.CrossEntropyLoss()
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
for step in range(4):
    x = np.random.default_rng(step).normal(size=(5, 6)).astype(np.float32)
    loss, gradients = gradient(Tensor(x), Tensor(np.arange(5) % 3, ms.int32))
    optimizer(gradients)
    open("out.txt", "a").write(f"{step}\\n")
    LAST
"""


def training(fault="pass", last="pass"):
    """Return a training with a fault in its model, and a line at the end of each step."""
    return TRAINING.replace("FAULT", fault).replace("LAST", last)


HEALTHY = training()
#: the logarithm of a number that may be negative
NAN = training("x = ops.log(x)")
#: a factor that the healthy training has not
FACTOR = training("x = x * 1.5")
UNIT = training("x = x * 1.0")
