# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A small transformer in the form that Megatron splits: python training.py DUMP_PATH [FAULT [LEVEL [MICRO_BATCHES]]].

Faults change what one rank of two has: half of a weight, or half of an activation.
"""

from __future__ import annotations

import json
import os
import sys

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from probe import PrecisionDebugger

BATCH, LENGTH, HEADS, SIZE, HIDDEN, VOCABULARY, LAYERS = 3, 5, 4, 6, 56, 32, 4
WIDTH = HEADS * SIZE


def parameter(random, *shape):
    return Parameter(Tensor(random.randn(*shape).astype(np.float32) * 0.3))


class Column(nn.Cell):
    """A layer whose outputs are split."""

    def __init__(self, random, inputs, outputs):
        super().__init__()
        self.weight, self.bias = parameter(random, outputs, inputs), parameter(random, outputs)

    def construct(self, x):
        return ops.matmul(x, self.weight.swapaxes(0, 1)) + self.bias


class Row(Column):
    """A layer whose inputs are split; ranks have terms of its output."""


class Norm(nn.Cell):
    """Layer normalisation, which every rank has in full."""

    def __init__(self, random):
        super().__init__()
        self.weight, self.bias = parameter(random, WIDTH), parameter(random, WIDTH)

    def construct(self, x):
        x = x - x.mean(-1, keep_dims=True)
        return x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + 1e-5) * self.weight + self.bias


class Embedding(nn.Cell):
    """A table whose rows are split."""

    def __init__(self, random):
        super().__init__()
        self.table = parameter(random, VOCABULARY, WIDTH)

    def construct(self, ids):
        return ops.gather(self.table, ids, 0)


class Attention(nn.Cell):
    """Causal self-attention whose heads are split."""

    def __init__(self, random):
        super().__init__()
        self.qkv, self.proj = Column(random, WIDTH, 3 * WIDTH), Row(random, WIDTH, WIDTH)
        self.mask = Tensor(np.triu(np.full((LENGTH, LENGTH), -1e4, np.float32), 1))

    def construct(self, x):
        qkv = self.qkv(x).reshape((BATCH, LENGTH, HEADS, 3 * SIZE)).transpose(0, 2, 1, 3)
        q, k, v = ops.split(qkv, SIZE, -1)
        weights = ops.softmax(ops.matmul(q, k.swapaxes(2, 3)) * SIZE**-0.5 + self.mask, -1)
        return self.proj(
            ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape((BATCH, LENGTH, WIDTH))
        )


class Mlp(nn.Cell):
    """Two layers whose hidden units are split."""

    def __init__(self, random, fault):
        super().__init__()
        self.fc1, self.fc2 = Column(random, WIDTH, HIDDEN), Row(random, HIDDEN, WIDTH)
        gain = np.linspace(0.5, 1.0, HIDDEN, dtype=np.float32)
        if fault:  # of the units of rank 1 of two
            gain[HIDDEN // 2 :] *= 0.9
        self.gain = Tensor(gain)

    def construct(self, x):
        return self.fc2(ops.tanh(self.fc1(x)) * self.gain)


class Block(nn.Cell):
    """One layer of the transformer."""

    def __init__(self, random, fault):
        super().__init__()
        self.norm1, self.norm2 = Norm(random), Norm(random)
        self.attention, self.mlp = Attention(random), Mlp(random, fault)

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Net(nn.Cell):
    """The transformer with its loss."""

    def __init__(self, fault=""):
        super().__init__()
        random = np.random.RandomState(7)
        self.embedding = Embedding(random)
        self.layers = nn.CellList(
            [Block(random, fault == "gain" and i == 2) for i in range(LAYERS)]
        )
        self.norm, self.head = Norm(random), Column(random, WIDTH, VOCABULARY)
        if fault == "weight":  # the rows of rank 1 of two
            weight = self.layers[2].mlp.fc1.weight
            weight.set_data(
                Tensor(np.concatenate((weight.asnumpy()[:28], weight.asnumpy()[28:] * 1.5)))
            )
        if fault == "row":  # the columns of rank 0 of two
            weight = self.layers[1].attention.proj.weight
            weight.set_data(
                Tensor(
                    np.concatenate((weight.asnumpy()[:, :12] * 3.0, weight.asnumpy()[:, 12:]), 1)
                )
            )

    def construct(self, ids, labels):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        return ops.cross_entropy(logits.reshape((-1, VOCABULARY)), labels.reshape((-1,)))


def main(path, fault="", level="mix", micro_batches=1):
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    net = Net(fault)
    net.set_train()
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    gradient = ms.value_and_grad(net, None, optimizer.parameters)
    random = np.random.RandomState(1)
    os.makedirs(path, exist_ok=True)
    config = os.path.join(path, "config.json")
    with open(config, "w") as file:
        json.dump({"task": "tensor", "level": level, "dump_path": "x", "tensor": {}}, file)
    debugger = PrecisionDebugger(config_path=config, dump_path=os.path.join(path, "dump"))
    for _ in range(2):
        debugger.start(net)
        for _ in range(int(micro_batches)):
            ids, labels = (
                Tensor(random.randint(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32))
                for _ in range(2)
            )
            _, gradients = gradient(ids, labels)
        debugger.stop()
        debugger.step()
        optimizer(gradients)


if __name__ == "__main__":
    main(*sys.argv[1:])
