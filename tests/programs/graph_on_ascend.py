# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two steps of a net in GRAPH_MODE at level L0.

python -m tests.programs.graph_on_ascend CPU|Ascend FOLDER on|bare|early|late

"early" and "late" are killed in the second step: when the journal has the first output of a Cell, or all entries.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from probe.reading.dumps import journal_reader
from tests.ascend.simulator import Device
from tests.support.dumps import Debug, Dump


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Dense(12, 32), nn.ReLU(), nn.Dense(32, 5)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, y):
        return self.loss(self.last(self.act(self.first(x))), y)


def kill(names):
    """Kill this process as soon as the journal of the second step has the finished entries."""
    journal, copy = Path(folder) / "dump" / "step1" / "rank" / "dump.journal", Path(folder) / "copy"
    while True:
        records = []
        if journal.exists():
            copy.write_bytes(journal.read_bytes())
            records = journal_reader.read(str(copy))[0][1:]
        ended = {record["name"] for record in records if not record.get("draft")} & set(names)
        if ended == set(names):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.001)


device, folder, way = sys.argv[1:4]
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device(device)
ms.set_seed(1)
np.random.seed(1)
net = Net()
update = nn.Momentum(net.trainable_params(), 0.1, 0.9)
step = ms.value_and_grad(net, None, update.parameters)
debugger = Debug(Path(folder))(level="L0") if way != "bare" else None
rng = np.random.RandomState(0)
for i in range(2):
    x, y = (
        Tensor(rng.randn(8, 12).astype(np.float32)),
        Tensor(rng.randint(0, 5, 8).astype(np.int32)),
    )
    if debugger:
        debugger.start(net)
    if i and way == "early":
        threading.Thread(target=kill, args=[["Cell.first.Dense.forward.0"]], daemon=True).start()
        Device().plan("delay run * 1 -1 20000")
    value, gradients = step(x, y)
    update(gradients)
    print(
        value.asnumpy().tobytes().hex(), [p.asnumpy().tobytes().hex() for p in net.get_parameters()]
    )
    if way == "late" and i:
        kill(list(Dump(Path(folder) / "dump" / "step0" / "rank").data))
    if debugger:
        debugger.stop()
        debugger.step()
