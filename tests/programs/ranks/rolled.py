# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Collectives, asynchronous ones too, bare, under rolling records and under a dump; rank{R}.json has what came out."""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

from probe import PrecisionDebugger

OUT = sys.argv[1]
STEPS = 13

ms.set_context(mode=ms.PYNATIVE_MODE)  # asynchronous: a communication does not keep the program
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()
from mindspore.mint import distributed


def train(name="", **own):
    """Return the bytes of all results."""
    ms.set_seed(1)
    net = nn.Dense(4, 3)
    gradient = ms.value_and_grad(lambda x: ops.relu(net(x)).sum(), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    random = np.random.default_rng(RANK)
    debugger = None
    if name:
        config = os.path.join(OUT, f"{name}.{RANK}.json")
        settings = {"task": "statistics", "level": "mix", "dump_path": os.path.join(OUT, name)}
        with open(config, "w") as file:
            json.dump({**settings, "statistics": own}, file)
        debugger = PrecisionDebugger(config_path=config)
    found = []
    for _ in range(STEPS):
        x = Tensor(random.normal(size=(2, 4)).astype(np.float32))
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradient(x)
        handles = [distributed.all_reduce(item, async_op=True) for item in gradients]
        meanwhile = ops.exp(-loss)
        for handle in handles:
            handle.wait()
        total = loss + RANK
        distributed.broadcast(total, 0)
        optimizer(tuple(item / SIZE for item in gradients))
        if debugger is not None:
            debugger.stop()
            debugger.step()
        found += [item.asnumpy().tobytes().hex() for item in (loss, meanwhile, total, *gradients)]
    if debugger is not None:
        debugger.close()
    return found


said = {
    "bare": train(),
    "rolled": train("rolled", rolling=3),
    "whole": train("whole"),
}
with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    json.dump(said, file)
