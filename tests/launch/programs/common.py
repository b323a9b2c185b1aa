# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A net and data for the programs beside it."""

import hashlib

import mindspore as ms
import numpy as np
from mindspore import nn, ops


class Net(nn.Cell):
    def __init__(self, wide=8):
        super().__init__()
        self.hidden, self.out = nn.Dense(4, wide), nn.Dense(wide, 3)

    def construct(self, x):
        return self.out(ops.relu(self.hidden(x)))


def batches(count, size=5, seed=0):
    random = np.random.RandomState(seed)
    for _ in range(count):
        x = ms.Tensor(random.randn(size, 4).astype(np.float32))
        yield x, ms.Tensor(random.randint(0, 3, size).astype(np.int32))


def dataset(count, size=5):
    random = np.random.RandomState(0)
    rows = [
        (random.randn(4).astype(np.float32), np.int32(random.randint(3)))
        for _ in range(count * size)
    ]
    return ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(size)


def tell(*nets):
    """Print the bits of all parameters."""
    for net in nets:
        data = b"".join(p.asnumpy().tobytes() for p in net.get_parameters())
        print(hashlib.sha1(data).hexdigest())
