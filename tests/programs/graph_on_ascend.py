# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two steps of a net in GRAPH_MODE at level L0.

python -m tests.programs.graph_on_ascend CPU|Ascend FOLDER on|bare|killed
"""

import os
import signal
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from tests.support.dumps import Debug


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Dense(12, 32), nn.ReLU(), nn.Dense(32, 5)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, y):
        return self.loss(self.last(self.act(self.first(x))), y)


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
    x, y = Tensor(rng.randn(8, 12).astype(np.float32)), Tensor(rng.randint(0, 5, 8).astype(np.int32))
    if debugger:
        debugger.start(net)
    value, gradients = step(x, y)
    update(gradients)
    print(value.asnumpy().tobytes().hex(), [p.asnumpy().tobytes().hex() for p in net.get_parameters()])
    if way == "killed" and i:
        os.kill(os.getpid(), signal.SIGKILL)
    if debugger:
        debugger.stop()
        debugger.step()
