# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training on the handwritten digits that does not know probe. `probe run` records it as it is.

    probe run --config examples/config.json --dump-path digits_dump examples/train.py

Writes the first two of six steps (see examples/config.json), everything at level mix, with arrays.
"""

import os

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

HERE = os.path.dirname(os.path.abspath(__file__))


class Net(nn.Cell):
    """A small convnet for images of 8x8."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, pad_mode="same", has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.hidden, self.out = nn.Dense(128, 32), nn.Dense(32, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.out(ops.relu(self.hidden(self.flatten(x))))


def batches(size=32):
    """Yield (images, labels) without end."""
    digits = np.load(os.path.join(HERE, "data", "digits.npz"))
    images = digits["images"].astype(np.float32)[:, None] / 16
    labels = digits["labels"].astype(np.int32)
    while True:
        for i in range(0, len(labels) - size + 1, size):
            yield Tensor(images[i : i + size]), Tensor(labels[i : i + size])


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    ms.set_seed(1)
    net = Net()
    net.set_train()
    loss_of = nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    for step, (x, y) in zip(range(6), batches()):
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        print(f"step {step}: loss {float(loss.asnumpy()):.4f}")


if __name__ == "__main__":
    main()
