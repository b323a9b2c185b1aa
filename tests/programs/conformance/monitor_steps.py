# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trains a net under TrainerMon of probe or of msprobe, each in an interpreter that has it.

MONITOR_OUTPUT_DIR=DIR python -m tests.programs.conformance.monitor_steps --tool probe --config FILE [--accumulate 2]

The net "decoder" has attention, linear Cells with one large singular value, and routers of experts.
"""

from __future__ import annotations

import argparse
import importlib

parser = argparse.ArgumentParser()
parser.add_argument("--tool", choices=["probe", "msprobe"], required=True)
parser.add_argument("--config", required=True)
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--net", choices=["dense", "decoder"], default="dense")
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


class Core(nn.Cell):
    """Attention of queries, keys and values [sequence, sample, head, size]."""

    def construct(self, q, k, v):
        q, k, v = (tensor.transpose(1, 2, 0, 3) for tensor in (q, k, v))
        weights = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) / 2.0, -1)
        return ops.matmul(weights, v).transpose(2, 0, 1, 3)


class Layer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv, self.core, self.fc = nn.Dense(8, 24), Core(), nn.Dense(8, 8)
        self.router, self.ln = nn.Dense(8, 4, has_bias=False), nn.LayerNorm((8,))

    def construct(self, x):
        shape = x.shape
        q, k, v = (part.reshape(*shape[:2], 2, 4) for part in ops.split(self.qkv(x), 8, axis=-1))
        x = self.ln(x + self.core(q, k, v).reshape(shape))
        return x + self.fc(x) * ops.softmax(self.router(x), -1)[..., :1]


class Decoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.layers, self.head = (
            nn.Dense(4, 8),
            nn.CellList([Layer(), Layer()]),
            nn.Dense(8, 3),
        )

    def construct(self, x):
        x = self.embed(x).reshape(4, 2, 8)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).reshape(8, 3)


ms.set_seed(1)
random, net = np.random.default_rng(0), Decoder() if args.net == "decoder" else Net()
net.set_train()
if args.net == "decoder":  # three steps of a power iteration then find the largest singular value
    for weight in (one for layer in net.layers for one in (layer.fc.weight, layer.qkv.weight)):
        weight.set_data(ms.Tensor(random.normal(size=weight.shape).astype(np.float32) * 0.01 + 0.5))
optimizer = ms.experimental.optim.AdamW(net.trainable_params(), lr=0.01)
gradient = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, optimizer.parameters)
if args.tool == "msprobe":  # mint.norm has no CPU kernel, and ops.sum of MindSpore 2.10 has no axis
    mint.norm = lambda x, *a, **k: np.linalg.norm(x.asnumpy().astype(np.float32))
    ops.sum = lambda x, axis=None, keepdims=False: x.sum(axis=axis, keepdims=keepdims)
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
    try:
        optimizer(total)
    except RuntimeError as error:  # msprobe ends the training after print_struct
        if "print model struct" not in str(error):
            raise
        break
print(float(loss.asnumpy()))
