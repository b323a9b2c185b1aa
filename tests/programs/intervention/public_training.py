# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training of a public net of mindcv, or of LeNet, that does not know probe: ``public_training NAME [STEPS]``."""

from __future__ import annotations

import importlib
import sys

import mindspore as ms
import numpy as np
from mindspore import nn

from tests.programs.one_run import loop
from tests.programs.one_run.healthy import MINDCV
from tests.support import nets

NETS = ("resnet", "mobilenetv3", "mlpmixer", "densenet", "shufflenetv2")


def main():
    name, steps = sys.argv[1], int((*sys.argv[2:], "32")[0])
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    np.random.seed(1)
    if name == "lenet":
        _, train = nets.build("lenet")
        for step in range(steps):
            train(step)
        return
    net = eval(MINDCV[name], {"m": importlib.import_module(f"mindcv.models.{name}")})
    net.set_train()
    loss_of, data = nn.CrossEntropyLoss(), loop.pictures()
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    for step in range(steps):
        _, gradients = gradient(*data[step % len(data)])
        optimizer(gradients)


if __name__ == "__main__":
    main()
