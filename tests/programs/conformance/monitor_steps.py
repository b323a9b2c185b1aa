# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains a net under TrainerMon of probe or of msprobe, each in an interpreter that has it.

MONITOR_OUTPUT_DIR=DIR python -m tests.programs.conformance.monitor_steps --tool probe --config FILE [--accumulate 2]
"""

from __future__ import annotations

import argparse
import importlib

parser = argparse.ArgumentParser()
parser.add_argument("--tool", choices=["probe", "msprobe"], required=True)
parser.add_argument("--config", required=True)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

import mindspore as ms
import numpy as np
from mindspore import mint, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc, self.ln = nn.Dense(6, 6), nn.LayerNorm((6,))

    def construct(self, x, scale):
        return self.ln(ops.relu(self.fc(x)) * scale)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed = nn.Dense(4, 6)
        self.layers = nn.CellList([Block(), Block()])
        self.head = nn.Dense(6, 3)

    def construct(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x, x * 0.5)
        return self.head(x)


ms.set_seed(1)
random, net = np.random.default_rng(0), Net()
net.set_train()
optimizer = ms.experimental.optim.AdamW(net.trainable_params(), lr=0.01)
gradient = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
if args.tool == "msprobe":  # mint.norm has no CPU kernel
    mint.norm = lambda x, *a, **k: np.linalg.norm(x.asnumpy().astype(np.float32))
module = importlib.import_module("probe" if args.tool == "probe" else "msprobe.mindspore")
monitor = module.TrainerMon(args.config)
monitor.set_monitor(net, optimizer, args.accumulate)
for _ in range(args.steps):
    total = None
    for _ in range(args.accumulate):
        x = random.normal(size=(8, 4)).astype(np.float32)
        loss, found = gradient(ms.Tensor(x), ms.Tensor(x[:, :3] * 2))
        total = found if total is None else tuple(a + b for a, b in zip(total, found))
    for parameter, reduced in zip(optimizer.parameters, total):
        parameter.main_grad = reduced  # the place where msprobe looks for it
    optimizer(total)
print(float(loss.asnumpy()))
