# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training in GRAPH_MODE, or in PyNative mode with one compiled Cell, that is killed in its second step.

python -m tests.programs.killed_graph FOLDER forward|backward|updated|never graph|jit
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, jit, nn, ops

from probe import PrecisionDebugger
from tests.support.compiled_nets import Inner

FOLDER, WHEN, KIND = sys.argv[1:]


def fatal(way):
    """Return an operator that returns its input; in the second step of a run that dies there, it does not return."""
    runs = []

    def run(x):
        runs.append(1)
        if way == WHEN and len(runs) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return x.copy()

    operator = ops.Custom(run, lambda shape: shape, lambda dtype: dtype, func_type="pyfunc")
    operator.add_prim_attr("side_effect_io", True)
    return operator


class Deadly(nn.Cell):
    """An identity in which the process may die, forward or backward."""

    def __init__(self):
        super().__init__()
        self.there, self.back = fatal("forward"), fatal("backward")

    def construct(self, x):
        return self.there(x)

    def bprop(self, x, out, dout):
        return (self.back(dout),)


class Outer(nn.Cell):
    """Holds the Cell in which the process dies."""

    def __init__(self):
        super().__init__()
        self.inner, self.deadly = Inner(), Deadly()

    def construct(self, x):
        return self.deadly(self.inner(x))


class Compiled(Outer):
    """The same under jit. MindSpore finds a construct in the class of the Cell only."""

    @jit
    def construct(self, x):
        return self.deadly(self.inner(x))


class Net(nn.Cell):
    """Cells before and after."""

    def __init__(self):
        super().__init__()
        self.first, self.last = Inner(), nn.Dense(8, 8)
        self.outer = Compiled() if KIND == "jit" else Outer()

    def construct(self, x):
        return self.last(self.outer(self.first(x))).sum()


ms.set_context(mode=ms.GRAPH_MODE if KIND == "graph" else ms.PYNATIVE_MODE)
ms.set_device("CPU")
ms.set_seed(1)
net = Net()
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
gradient = ms.value_and_grad(net, None, optimizer.parameters)
config = Path(FOLDER, "config.json")
config.write_text(json.dumps({"level": "L0", "dump_path": FOLDER, "journal": "each"}))
config.chmod(0o640)
debugger = PrecisionDebugger(config_path=str(config))
for i in range(3):
    debugger.start(net)
    loss, gradients = gradient(Tensor(np.random.RandomState(i).randn(4, 8).astype(np.float32)))
    optimizer(gradients)
    if WHEN == "updated" and i == 1:
        net.last.weight.asnumpy()
        os.kill(os.getpid(), signal.SIGKILL)
    debugger.stop()
    debugger.step()
