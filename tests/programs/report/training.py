# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A small GPT on several ranks, golden and with a planted change: ``training.py OUT STEPS CHANGE``."""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.mint import distributed

from probe import PrecisionDebugger
from tests.programs.origins.models import Gpt

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()


def reduced(gradients):
    """Return the means over all ranks."""
    means = []
    for gradient in gradients:
        whole = gradient.copy()
        distributed.all_reduce(whole)
        means.append(whole / SIZE)
    return tuple(means)


def train(debugger, change, steps):
    """Train on patterns that repeat, so that the loss falls."""
    ms.set_seed(1)
    np.random.seed(1)
    net = Gpt(change)
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    rng = np.random.RandomState(RANK)
    for _ in range(steps):
        text = (rng.randint(0, 64, (4, 1)) + np.arange(17) * 3).astype(np.int32) % 64
        debugger.start(net)
        _, gradients = gradient(Tensor(text[:, :-1]), Tensor(text[:, 1:].reshape(-1)))
        optimizer(reduced(gradients))
        debugger.stop()
        debugger.step()


def main(folder, steps, change):
    for name, planted in (("golden", ""), ("mine", change)):
        path = os.path.join(folder, f"{name}.{RANK}.json")
        settings = {
            "task": "tensor",
            "level": "mix",
            "dump_path": os.path.join(folder, name),
            "tensor": {},
        }
        with open(path, "w") as file:
            json.dump(settings, file)
        train(PrecisionDebugger(config_path=path), planted, int(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
