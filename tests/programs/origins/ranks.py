# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The digits on two ranks with each planted change in turn: ``ranks.py OUT MODE NOISE CHANGES [live]``; a dump each."""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.mint import distributed

from probe import PrecisionDebugger
from tests.programs.origins.cases import FAULTS
from tests.programs.origins.models import STEPS, add_noise
from tests.support import nets

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()


def reduced(gradients, change):
    """Return the means over all ranks."""
    means = []
    for place, gradient in enumerate(gradients):
        whole = gradient.copy()
        if change != "one gradient is not reduced" or place != 2:
            operation = "max" if change == "greatest in place of sum" and place == 2 else "sum"
            distributed.all_reduce(whole, op=operation)
        means.append(whole / (SIZE - 1 if change == "divided by one rank too few" else SIZE))
    return tuple(means)


def train(debugger, change, noise):
    """Train the digits."""
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Digits()
    if noise:
        add_noise(net, noise, debugger)
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    data = nets.digits()
    reader = 0 if change == "rank 1 reads the data of rank 0" else RANK
    for step in range(STEPS):
        debugger.start(net)
        _, gradients = gradient(*data[step * SIZE + reader])
        optimizer(reduced(gradients, change))
        debugger.stop()
        debugger.step()


def main():
    out, mode, noise = sys.argv[1], sys.argv[2], float(sys.argv[3])
    task = "tensor" if mode == "tensor" else "statistics"
    own = {} if mode == "statistics" else {"summary_mode": "md5"} if mode == "md5" else {}
    changes = ["golden", ""] + [fault.change for fault in FAULTS if fault.kind == "ranks"]
    wanted = sys.argv[4].split(";") if len(sys.argv) > 4 else changes
    for change in changes:
        if change not in wanted:
            continue
        name = (change.replace(" ", "_") or "again") + ".live" * (len(sys.argv) > 5)
        path = os.path.join(out, f"{name}.{RANK}.json")
        dump_path = os.path.join(out, name)
        settings = {"task": task, "level": "mix", "dump_path": dump_path, task: own}
        if len(sys.argv) > 5:
            settings["golden"] = os.path.join(out, "golden")
        with open(path, "w") as file:
            json.dump(settings, file)
        train(PrecisionDebugger(config_path=path), change, 0.0 if change == "golden" else noise)


if __name__ == "__main__":
    main()
