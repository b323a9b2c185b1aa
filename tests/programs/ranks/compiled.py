# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compiled trainings on several ranks, bare and at L0; the digest of each goes into rank{R}.json.

The argument is the mode: GRAPH_MODE compiles the whole step, PYNATIVE_MODE one Cell of the net.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, jit, nn
from mindspore.communication import get_group_size, get_rank, init

from probe import PrecisionDebugger
from tests.support.compiled_nets import Inner

OUT, MODE = sys.argv[1:]
STEPS = 3

ms.set_context(mode=getattr(ms, MODE))
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()


class Compiled(nn.Cell):
    """A compiled Cell; one Cell in it is called twice."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = Inner(), nn.Dense(8, 8)

    @jit
    def construct(self, x):
        return self.last(self.inner(self.inner(x)))


class Net(nn.Cell):
    """A compiled Cell between plain ones."""

    def __init__(self):
        super().__init__()
        self.first, self.part, self.end = nn.Dense(8, 8), Compiled(), Inner()

    def construct(self, x):
        return self.end(self.part(self.first(x))).sum()


class Step(nn.Cell):
    """One step: gradients, their means over all ranks, the update."""

    def __init__(self, net):
        super().__init__()
        self.optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        self.gradient = ms.value_and_grad(net, None, self.optimizer.parameters)
        self.reduce = nn.DistributedGradReducer(self.optimizer.parameters, mean=True, degree=SIZE)

    def construct(self, x):
        loss, gradients = self.gradient(x)
        means = self.reduce(gradients)
        self.optimizer(means)
        return loss, gradients, means


def train(debugger):
    """Return a digest of every loss, gradient and parameter, and the losses."""
    ms.set_seed(1)
    np.random.seed(1)
    net = Net()
    net.set_train()
    step = Step(net)
    run = step if MODE == "GRAPH_MODE" else step.construct
    digest, losses = hashlib.sha256(), []
    for i in range(STEPS):
        if debugger is not None:
            debugger.start(net)
        loss, gradients, means = run(
            Tensor(np.random.RandomState(i * SIZE + RANK).randn(4, 8).astype(np.float32))
        )
        if debugger is not None:
            debugger.stop()
            debugger.step()
        for tensor in (loss, *gradients, *means, *net.get_parameters()):
            digest.update(tensor.asnumpy().tobytes())
        losses.append(float(loss.asnumpy()))
    return digest.hexdigest(), losses


result = {"bare": train(None)}
for name, task, ranks in (
    ("statistics", "statistics", []),
    ("tensor", "tensor", []),
    ("one", "statistics", [1]),
):
    path = os.path.join(OUT, f"{name}.{RANK}.json")
    settings = {
        "level": "L0",
        "task": task,
        "step": [1],
        "rank": ranks,
        "dump_path": os.path.join(OUT, name),
    }
    with open(path, "w") as file:
        json.dump(settings, file)
    result[name] = train(PrecisionDebugger(config_path=path))
with open(os.path.join(OUT, f"rank{RANK}.json"), "w") as file:
    json.dump(result, file)
