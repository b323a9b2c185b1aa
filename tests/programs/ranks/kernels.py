# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2 on several ranks: the first start before the communication, then a compiled function on each rank."""

from __future__ import annotations

import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.communication import get_rank, init

from probe import PrecisionDebugger

OUT = sys.argv[1]

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
debugger = PrecisionDebugger(level="L2", task="statistics", dump_path=os.path.join(OUT, "dump"))


@ms.jit
def double(x):
    return ops.relu(x) + x


for step in range(2):
    debugger.start()
    if not step:
        init()
    x = Tensor(np.full((2, 2), 1.0 + get_rank(), np.float32))
    double(x)
    debugger.stop()
    debugger.step()
