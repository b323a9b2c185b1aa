# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A loss is scaled, and its gradients are not scaled back before the update."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import amp, nn, ops

net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
net.set_train()
optimizer = nn.SGD(net.trainable_params(), 0.02)
scaler = amp.DynamicLossScaler(16.0, 2, 40)


def loss_of(x, y):
    loss = ops.cross_entropy(net(x), y)
    return scaler.scale(loss), loss


gradient = ms.value_and_grad(loss_of, None, optimizer.parameters, has_aux=True)
for step in range(12):
    x = np.random.default_rng(step).normal(size=(32, 8)).astype(np.float32)
    y = ms.Tensor((x[:, 0] > 0).astype(np.int32) + 2 * (x[:, 1] > 0).astype(np.int32))
    (_, loss), gradients = gradient(ms.Tensor(x), y)
    if not lab.BAD:
        gradients = scaler.unscale(gradients)
    optimizer(gradients)
    print(step, float(loss))
