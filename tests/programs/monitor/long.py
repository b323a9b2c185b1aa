# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A long training, bare and then under the monitor. Prints one JSON line: memory that grew, length of the file.

    python -m tests.programs.monitor.long [--steps 10000] [--rolling 50 [--calls 600]]

Memory is what the process holds, in bytes, and the part of it that Python and numpy hold, which has no noise.
Both are read after a tenth of the steps and at the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import tempfile
import tracemalloc
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=10_000)
parser.add_argument("--rolling", type=int, help="record a share of the calls in each step")
parser.add_argument("--calls", type=int, default=0, help="so many calls of a function more")
given = parser.parse_args()

import mindspore as ms
import numpy as np
from mindspore import nn

from probe import PrecisionDebugger
from probe.series.series import open_series

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
ms.set_seed(1)


class Calls(nn.Cell):
    """Calls on four numbers, which stay as they are."""

    def construct(self, x):
        for _ in range(given.calls):
            x = x * 1.0
        return x


net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4), Calls())
optimizer = nn.Adam(net.trainable_params(), 0.001)
gradient = ms.value_and_grad(
    lambda x: ((net(x) - x[:, :4]) ** 2).mean(), None, optimizer.parameters
)
random = np.random.default_rng(0)
data = [ms.Tensor(random.normal(size=(8, 8)).astype(np.float32)) for _ in range(16)]


def held():
    """Return the bytes that the process holds, and those of Python, which are 0 before tracemalloc has started."""
    gc.collect()
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return np.array([int(line.split()[1]) * 1024, tracemalloc.get_traced_memory()[0]])
    raise OSError("no VmRSS")


def train(steps, debugger=None):
    """Return by how many bytes memory grew after the first tenth of the steps: of the process, and of Python."""
    for step in range(steps):
        if debugger is not None:
            debugger.start(net)
        _, gradients = gradient(data[step % 16])
        optimizer(gradients)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        if step == steps // 10:
            first = held()
    return (held() - first).tolist()


bare, _ = train(given.steps)
folder = tempfile.mkdtemp()
config = os.path.join(folder, "config.json")
with open(config, "w") as file:
    # a dump after an alarm has a constant price of its own
    own = {} if given.rolling is None else {"rolling": given.rolling, "on_alarm": "log"}
    level = "mix" if own else "L1"
    top = {"task": "monitor", "level": level, "dump_path": folder, "quiet": True}
    json.dump({**top, "monitor": own}, file)
tracemalloc.start()
watched, python = train(given.steps, PrecisionDebugger(config_path=config))
PrecisionDebugger.close()
(series,) = open_series(folder)
content = Path(series.path).read_bytes()
head = content.partition(b"\n")[0]
names = json.loads(head)["names"]
result = {
    "bare": bare,
    "watched": watched,
    "python": python,
    "rows": len(series.steps),
    "sections": content.count(head[:17]),
    "length": len(content),
    "calls": 0 if given.rolling is None else Path(folder, "monitor/rank/calls.bin").stat().st_size,
    "computed": len(head) + 1 + 4 * len(names) * given.steps,
}
shutil.rmtree(folder)
print(json.dumps(result))
