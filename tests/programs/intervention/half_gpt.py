# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The GPT of the tests in half precision; Cells that are named overflow in it, or round too much.

    python -m tests.programs.intervention.half_gpt [--overflow blocks.3.up,blocks.4.down] [--coarse blocks.2.norm1]
        [--layers 6] [--single]

An overflow leaves float16 within the Cell and comes back. A coarse Cell loses the last digits of its output, so the
losses go apart. With ``--single`` all of it is float32. Two names plant a pair: either alone spoils the loss.
"""

from __future__ import annotations

import argparse

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from tests.support import nets


def spoiled(cell, kind):
    """Let the numbers of a Cell overflow in float16, or be rounded, before it returns."""
    own = type(cell)

    def construct(self, *inputs):
        y = own.construct(self, *inputs)
        return y * 30000 * 30000 / 30000 / 30000 if kind == "overflow" else (y + 3000) - 3000

    cell.__class__ = type(own.__name__, (own,), {"construct": construct})


def build(arguments):
    """Return (optimizer, loss function, batches)."""
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Gpt(layers=arguments.layers)
    for kind in ("overflow", "coarse"):
        for path in filter(None, getattr(arguments, kind).split(",")):
            spoiled(dict(net.cells_and_names())[path], kind)
    if not arguments.single:
        net.to_float(ms.float16)
    rng = np.random.RandomState(0)
    x, y = (
        rng.randint(0, 64, (5, 4, 16)).astype(np.int32),
        rng.randint(0, 64, (5, 64)).astype(np.int32),
    )
    entropy = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    return optimizer, lambda a, b: entropy(net(a).astype(ms.float32), b), list(zip(x, y))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--overflow", default="")
    parser.add_argument("--coarse", default="")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--single", action="store_true")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    optimizer, loss_of, data = build(arguments)
    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)
    for step in range(arguments.steps):
        loss, gradients = gradient(*map(Tensor, data[step % len(data)]))
        optimizer(gradients)
        print(f"step {step}: loss {float(loss.asnumpy()):.4f}", flush=True)


if __name__ == "__main__":
    main()
