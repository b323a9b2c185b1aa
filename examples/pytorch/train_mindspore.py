# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The training step of record_pytorch.py in MindSpore, recorded by probe.

    python examples/pytorch/train_mindspore.py --dump-path ported
    probe compare examples/pytorch/L0 ported

``--gelu tanh`` makes a usual mistake of a port: the approximate gelu in place of the exact one.
"""

import argparse
import json

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from weights import HIDDEN, LAYERS, LENGTH, VOCABULARY, WIDTH, batch, weights

from probe import PrecisionDebugger


class Attention(nn.Cell):
    """Self-attention with one head."""

    def __init__(self, dense):
        super().__init__()
        self.q, self.k, self.v, self.o = (dense(WIDTH, WIDTH) for _ in range(4))

    def construct(self, x):
        scores = ops.matmul(self.q(x), self.k(x).swapaxes(1, 2)) * WIDTH**-0.5
        return self.o(ops.matmul(ops.softmax(scores, -1), self.v(x)))


class Block(nn.Cell):
    """A transformer block."""

    def __init__(self, dense, approximate):
        super().__init__()
        self.norm1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)  # PyTorch's epsilon
        self.norm2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.attention = Attention(dense)
        self.up = dense(WIDTH, HIDDEN)
        self.act = nn.GELU(approximate=approximate)
        self.down = dense(HIDDEN, WIDTH)

    def construct(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Head(nn.Cell):
    """Logits; the weight has (inputs, outputs), the transpose of PyTorch's."""

    def __init__(self):
        super().__init__()
        self.weight = Parameter(Tensor(np.zeros((WIDTH, VOCABULARY), np.float32)), name="weight")

    def construct(self, x):
        return ops.matmul(x, self.weight)


class Net(nn.Cell):
    """A small transformer."""

    def __init__(self, dense, approximate):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = Parameter(Tensor(np.zeros((LENGTH, WIDTH), np.float32)), name="positions")
        self.blocks = nn.CellList([Block(dense, approximate) for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm((WIDTH,), epsilon=1e-5), Head()

    def construct(self, tokens):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def load(net):
    """Give the net PyTorch's weights."""
    words = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}
    arrays = weights()
    arrays["head.weight"] = arrays["head.weight"].T
    for name, parameter in net.parameters_and_names():
        place, _, word = name.rpartition(".")
        array = arrays[f"{place}.{words.get(word, word)}" if place else word]
        parameter.set_data(Tensor(np.ascontiguousarray(array)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dump-path", required=True)
    parser.add_argument("--level", default="L0", choices=["L0", "L1", "mix"])
    parser.add_argument("--task", default="statistics", choices=["statistics", "tensor"])
    parser.add_argument("--gelu", default="none", choices=["none", "tanh"])
    parser.add_argument(
        "--linear", default="nn", choices=["nn", "mint"], help="nn.Dense, or mint.nn.Linear"
    )
    parser.add_argument(
        "--list", nargs="*", default=[], help="parts of the names of what is recorded"
    )
    given = parser.parse_args()

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    net = Net(mint.nn.Linear if given.linear == "mint" else nn.Dense, given.gelu == "tanh")
    load(net)
    net.set_train()
    tokens, labels = (Tensor(array.astype(np.int32)) for array in batch())

    def forward(x, y):
        return ops.cross_entropy(net(x).reshape(-1, VOCABULARY), y)

    gradient = ms.value_and_grad(forward, None, net.trainable_params())
    settings = {
        "task": given.task,
        "level": given.level,
        "dump_path": given.dump_path,
        given.task: {"list": given.list},
    }
    with open(f"{given.dump_path}.json", "w") as file:
        json.dump({**settings, "overwrite": True}, file)
    debugger = PrecisionDebugger(config_path=f"{given.dump_path}.json")
    debugger.start(net)
    loss, _ = gradient(tokens, labels)
    debugger.stop()
    debugger.step()
    print("loss", loss.asnumpy())


if __name__ == "__main__":
    main()
