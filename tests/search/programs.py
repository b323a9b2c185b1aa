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

#: a training whose step 6 makes NaN; its word is the step to begin with, and there is a checkpoint of step 4
LATE = TRAINING.replace(
    "FAULT",
    """if self.is_late:
            x = ops.log(x)""",
)
LATE = LATE.replace("net.set_train()", "net.set_train()\nbegin = int((sys.argv[1:] or [0])[0])")
LATE = LATE.replace(
    "for step in range(4):",
    """if begin:
    ms.load_param_into_net(net, ms.load_checkpoint(f"before_{begin}.ckpt"))
for step in range(begin, 8):
    net.is_late = step == 6
    if step == 4:
        ms.save_checkpoint(net, "before_4.ckpt")""",
).replace("    LAST\n", "")

#: Model.train with a loss that takes the logarithm of a number that may be negative
FITTED = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset

ms.set_device("CPU")
ms.set_seed(3)


class Loss(nn.Cell):
    def construct(self, x, y):
        return (ops.log(x) - y).mean()


x = np.random.default_rng(1).normal(size=(16, 6)).astype(np.float32)
rows = NumpySlicesDataset((x, x[:, :3]), ["x", "y"], shuffle=False).batch(4)
net = nn.Dense(6, 3)
model = ms.Model(net, Loss(), nn.SGD(net.trainable_params(), 0.1))
model.train(1, rows, dataset_sink_mode=False)
"""

#: a Cell with a backward of its own; FACTOR is 1 where it is right
OWN_BACKWARD = (
    training("x = self.square(x)")
    .replace(
        "class Net(nn.Cell):",
        """class Square(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * x * 2.0 * FACTOR,)


class Net(nn.Cell):""",
    )
    .replace(
        "        self.first, self.last",
        "        self.square = Square()\n        self.first, self.last",
    )
)
OWN_BACKWARD_WRONG = OWN_BACKWARD.replace("FACTOR", "0.5")
OWN_BACKWARD_RIGHT = OWN_BACKWARD.replace("FACTOR", "1.0")

#: two ranks with one factor that the golden program has not
RANKS = """
import sys
import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops
from mindspore.communication import get_group_size, get_rank, init

ms.set_device("CPU")
init()
ms.set_seed(1)
net = nn.SequentialCell(nn.Dense(6, 8), nn.Tanh(), nn.Dense(8, 3))
net.set_train()
optimizer = nn.SGD(net.trainable_params(), 0.1)
loss_of = nn.CrossEntropyLoss()


def forward(x, y):
    x = net(x)
    if "bad" in sys.argv:
        x = ops.log(x)
    return loss_of(x, y)


gradient = ms.value_and_grad(forward, None, optimizer.parameters)
chance = np.random.default_rng(get_rank())
for step in range(4):
    x = ms.Tensor(chance.normal(size=(5, 6)).astype(np.float32))
    loss, gradients = gradient(x, ms.Tensor(np.arange(5) % 3, ms.int32))
    for one in gradients:
        mint.distributed.all_reduce(one)
    optimizer(tuple(one / get_group_size() for one in gradients))
"""

#: a training whose golden program cuts its gradients: that changes a value in step 2 alone, where the batch is large
CUT = HEALTHY.replace("    optimizer(gradients)", "    CUT\n    optimizer(gradients)").replace(
    ".astype(np.float32)", ".astype(np.float32) * (40.0 if step == 2 else 0.2)"
)
UNCUT = CUT.replace("CUT", "pass")
CUT = CUT.replace("CUT", "gradients = tuple(ops.clamp(one, -0.6, 0.6) for one in gradients)")

#: draws that a CPU does not repeat: a Dropout divides its work by measured time from its sixth call on
CHANCE = """if self.step >= 2:
            for drop in self.drops:
                for _ in range(10):
                    x = drop(x)"""


def by_chance(before="pass", behind="pass"):
    """Return a training that does not repeat its bits from step 2 on, with a line before the chance and one behind."""
    text = training(f"{before}\n        {CHANCE}\n        {behind}")
    drops = "self.drops = nn.CellList([nn.Dropout(p=0.001 * n) for n in range(1, 9)])"
    for old, new in (
        ("nn.Dense(8, 3)\n", f"nn.Dense(8, 3)\n        {drops}\n"),
        ("nn.Dense(6, 8), nn.Dense(8, 3)", "nn.Dense(6, 256), nn.Dense(256, 3)"),
        ("(5, 6)", "(64, 6)"),
        ("np.arange(5)", "np.arange(64)"),
        ("range(4):", "range(4):\n    net.step = step"),
    ):
        text = text.replace(old, new)
    return text
