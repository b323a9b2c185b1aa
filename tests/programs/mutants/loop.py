# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The training loop of the benchmark. Its lines are changed as those of the nets are."""

from __future__ import annotations

import mindspore as ms
from mindspore import nn, ops

from tests.programs.mutants.decoders import OwnAdam

STEPS = 2


def make_optimizer(name, parameters):
    if name == "adam":
        return nn.Adam(
            parameters, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01
        )
    if name == "own":
        return OwnAdam(parameters)
    return nn.Momentum(parameters, learning_rate=0.05, momentum=0.9, weight_decay=1e-4)


def train(net, name, data, debugger, between):
    net.set_train()
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = make_optimizer(name, net.trainable_params())

    def forward(x, y):
        logits = net(x)
        return loss_fn(logits, y)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    losses = []
    for step in range(STEPS):
        x, y = data[step]
        debugger.start(net)
        loss, gradients = gradient(x, y)
        gradients = ops.clip_by_global_norm(gradients, 1.0)
        optimizer(gradients)
        debugger.stop()
        debugger.step()
        between(step, net, optimizer)
        losses.append(loss.asnumpy().tobytes())
    return losses
