# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A net whose layers are split over the ranks: tensor_parallel.py FOLDER [FAULT]. Alone it has the whole layers.

With FAULT "weight" rank 1 has another shard of one weight, with "norm" another weight that all ranks should share.
"""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init

from probe import PrecisionDebugger

WIDTH, HIDDEN, LAYERS = 16, 64, 3


class Copy(nn.Cell):
    """The identity, whose gradient is added up over the ranks."""

    def __init__(self, ranks):
        super().__init__()
        self.add_up = ops.AllReduce() if ranks > 1 else None

    def construct(self, x):
        return x

    def bprop(self, x, out, dout):
        return (self.add_up(dout) if self.add_up else dout,)


class Reduce(nn.Cell):
    """The sum over the ranks, whose gradient is that of each term."""

    def __init__(self, ranks):
        super().__init__()
        self.add_up = ops.AllReduce() if ranks > 1 else None

    def construct(self, x):
        return self.add_up(x) if self.add_up else x

    def bprop(self, x, out, dout):
        return (dout,)


class Column(nn.Cell):
    """A layer of which each rank has some outputs."""

    def __init__(self, weight, bias, rank, ranks):
        super().__init__()
        self.weight = Parameter(Tensor(np.split(weight, ranks)[rank]))
        self.bias = Parameter(Tensor(np.split(bias, ranks)[rank]))
        self.copy = Copy(ranks)

    def construct(self, x):
        return ops.matmul(self.copy(x), self.weight.swapaxes(0, 1)) + self.bias


class Row(nn.Cell):
    """A layer of which each rank has some inputs."""

    def __init__(self, weight, bias, rank, ranks):
        super().__init__()
        self.weight = Parameter(Tensor(np.ascontiguousarray(np.split(weight, ranks, 1)[rank])))
        self.bias = Parameter(Tensor(bias))
        self.reduce = Reduce(ranks)

    def construct(self, x):
        return self.reduce(ops.matmul(x, self.weight.swapaxes(0, 1))) + self.bias


class Block(nn.Cell):
    """A norm and two layers."""

    def __init__(self, draw, rank, ranks):
        super().__init__()
        self.norm = nn.LayerNorm((WIDTH,))
        self.fc1 = Column(draw(HIDDEN, WIDTH), draw(HIDDEN), rank, ranks)
        self.fc2 = Row(draw(WIDTH, HIDDEN), draw(WIDTH), rank, ranks)

    def construct(self, x):
        return x + self.fc2(ops.gelu(self.fc1(self.norm(x))))


class Net(nn.Cell):
    """Some blocks and a loss."""

    def __init__(self, draw, rank, ranks):
        super().__init__()
        self.layers = nn.CellList([Block(draw, rank, ranks) for _ in range(LAYERS)])

    def construct(self, x):
        for layer in self.layers:
            x = layer(x)
        return (x * x).mean()


def main(folder, fault=""):
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    rank, ranks = 0, 1
    if "MS_WORKER_NUM" in os.environ:
        init("mccl")
        rank, ranks = get_rank(), get_group_size()
    random = np.random.RandomState(3)
    net = Net(lambda *shape: random.randn(*shape).astype(np.float32) * 0.3, rank, ranks)
    if rank == 1 and fault == "weight":
        net.layers[1].fc1.weight.set_data(net.layers[1].fc1.weight * 1.1)
    if rank == 1 and fault == "norm":
        net.layers[1].norm.gamma.set_data(net.layers[1].norm.gamma * 1.1)
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    gradient = ms.value_and_grad(net, None, optimizer.parameters)
    config = os.path.join(folder, f"config{rank}.json")
    with open(config, "w") as file:
        json.dump({"task": "tensor", "level": "mix", "dump_path": "x", "tensor": {}}, file)
    debugger = PrecisionDebugger(config_path=config, dump_path=os.path.join(folder, "dump"))
    for _ in range(2):
        x = Tensor(random.randn(8, WIDTH).astype(np.float32))
        debugger.start(net)
        _, gradients = gradient(x)
        debugger.stop()
        debugger.step()
        optimizer(gradients)


if __name__ == "__main__":
    main(*sys.argv[1:])
