# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The digits on several ranks."""

from __future__ import annotations

import hashlib

import mindspore as ms
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.mint import distributed

from tests.support import nets

STEPS = 2

ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
ms.set_device("CPU")
init()
RANK, SIZE = get_rank(), get_group_size()


def reduced(gradients):
    """Return the means over all ranks, by hand."""
    means = []
    for gradient in gradients:
        whole = gradient.copy()
        distributed.all_reduce(whole)
        means.append(whole / SIZE)
    return tuple(means)


def train(debugger, by_hand):
    """Return the losses, and a digest of every loss, gradient and parameter."""
    ms.set_seed(1)
    np.random.seed(1)
    net = nets.Digits()
    net.set_train()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    reduce = (
        reduced
        if by_hand
        else nn.DistributedGradReducer(optimizer.parameters, mean=True, degree=SIZE)
    )
    loss_of = nn.CrossEntropyLoss()
    gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
    data = nets.digits()
    digest, losses = hashlib.sha256(), []
    for step in range(STEPS):
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradient(*data[step * SIZE + RANK])
        means = reduce(gradients)
        optimizer(means)
        if debugger is not None:
            debugger.stop()
            debugger.step()
        for tensor in (loss, *gradients, *means, *net.get_parameters()):
            digest.update(tensor.asnumpy().tobytes())
        losses.append(float(loss.asnumpy()))
    return losses, digest.hexdigest()
