# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training loop of one's own on the handwritten digits, recorded by four lines of probe.

    python examples/train_loop.py --dump-path digits_dump

Writes the first two of six steps (see examples/config.json), everything at level mix, with arrays.
"""

import argparse
import os

import mindspore as ms
from mindspore import nn
from train import HERE, Net, batches

from probe import PrecisionDebugger


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dump-path", help="where the dump goes (default: what the settings file says)"
    )
    parser.add_argument("--steps", type=int, default=6)
    arguments = parser.parse_args()

    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = Net()
    net.set_train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)

    config = os.path.join(HERE, "config.json")
    debugger = PrecisionDebugger(config_path=config, dump_path=arguments.dump_path)
    for step, (x, y) in zip(range(arguments.steps), batches()):
        debugger.start(net)
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
        print(f"step {step}: loss {float(loss.asnumpy()):.4f}")


if __name__ == "__main__":
    main()
