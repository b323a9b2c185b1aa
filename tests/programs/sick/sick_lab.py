# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Settings of the small programs beside it: ``CASE.py good|bad`` is a plain training that knows nothing of probe."""

import sys

import mindspore as ms
import numpy as np

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
BAD = sys.argv[1] == "bad"
assert sys.argv[1] in ("good", "bad")
ms.set_seed(7)
np.random.seed(7)


def random(*shape, seed=0, scale=1.0):
    return ms.Tensor((np.random.default_rng(seed).normal(size=shape) * scale).astype(np.float32))


def whole(*shape, high, low=0, seed=0):
    return ms.Tensor(np.random.default_rng(seed).integers(low, high, shape), ms.int32)


def train(steps, optimizer, loss_of, batch, after=None):
    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)
    for step in range(steps):
        loss, gradients = gradient(*batch(step))
        optimizer(gradients)
        print(step, float(loss))
        if after:
            after(step)
