# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A small character GPT on six of Shakespeare's sonnets, the first step recorded by probe.

python examples/train_gpt.py --dump-path gpt_dump
"""

import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from train import HERE

from probe import PrecisionDebugger

WIDTH, HEADS, LENGTH, BATCH = 64, 4, 32, 8


class Block(nn.Cell):
    """Attention and a small network, each around a residual sum."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm((WIDTH,)), nn.LayerNorm((WIDTH,))
        self.qkv, self.proj = nn.Dense(WIDTH, 3 * WIDTH), nn.Dense(WIDTH, WIDTH)
        self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
        self.mask = Tensor(np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))

    def construct(self, x):
        shape = (x.shape[0], LENGTH, HEADS, WIDTH // HEADS)
        q, k, v = (
            t.reshape(shape).transpose(0, 2, 1, 3)
            for t in ops.split(self.qkv(self.norm1(x)), WIDTH, -1)
        )
        weights = ops.softmax(
            ops.matmul(q, k.transpose(0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5 + self.mask, -1
        )
        x = x + self.proj(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(ops.relu(self.up(self.norm2(x))))


class Gpt(nn.Cell):
    """A two-layer decoder over characters."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = Parameter(Tensor(np.zeros((LENGTH, WIDTH), np.float32)), name="positions")
        self.blocks = nn.SequentialCell(Block(), Block())
        self.norm, self.head = nn.LayerNorm((WIDTH,)), nn.Dense(WIDTH, vocabulary)

    def construct(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dump-path", help="where the dump goes (default: what the settings file says)"
    )
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    with open(os.path.join(HERE, "data", "sonnets.txt"), encoding="utf-8") as file:
        letters, codes = np.unique(list(file.read()), return_inverse=True)
    net, loss_of, random = Gpt(len(letters)), nn.CrossEntropyLoss(), np.random.RandomState(1)
    optimizer = nn.Adam(net.trainable_params(), 3e-3)
    gradient = ms.value_and_grad(
        lambda x, y: loss_of(net(x).reshape(-1, len(letters)), y.reshape(-1)),
        None,
        optimizer.parameters,
    )
    config = os.path.join(HERE, "config.json")
    folder = arguments.dump_path
    debugger = PrecisionDebugger(config, task="statistics", dump_path=folder, step=[0])
    for step in range(20):
        text = np.stack(
            [codes[i : i + LENGTH + 1] for i in random.randint(0, len(codes) - LENGTH - 1, BATCH)]
        )
        debugger.start(net)
        loss, gradients = gradient(Tensor(text[:, :-1], ms.int32), Tensor(text[:, 1:], ms.int32))
        optimizer(gradients)
        debugger.step()
        print(f"step {step}: loss {float(loss.asnumpy()):.4f}")


if __name__ == "__main__":
    main()
