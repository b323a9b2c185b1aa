# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Communication begins in the middle of a step; only rank 1 is to record, and dies before the step ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import mindspore as ms
from mindspore import Tensor, ops
from mindspore.communication import get_rank, init

from probe import PrecisionDebugger

OUT = sys.argv[1]
DONE = os.path.join(OUT, "rank0_has_stepped")

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
path = os.path.join(OUT, f"{os.getpid()}.json")
with open(path, "w") as file:
    json.dump(
        {
            "task": "tensor",
            "level": "L1",
            "dump_path": os.path.join(OUT, "dump"),
            "rank": [1],
            "journal": "each",
        },
        file,
    )
debugger = PrecisionDebugger(config_path=path)
original = ops.relu
debugger.start()
ops.relu(Tensor([-1.0, 2.0]))
init()
ops.exp(Tensor([0.0]))
if get_rank() == 0:
    debugger.step()
    debugger.start()
    assert ops.relu is original  # a rank that does not record installs nothing
    debugger.stop()
    open(DONE, "w").close()
    time.sleep(60)  # until the launcher ends it
else:
    while not os.path.exists(DONE):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
