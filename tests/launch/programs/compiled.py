# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A training step under @jit, with evaluation under @jit too."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
scaler = ms.amp.DynamicLossScaler(8, 2, 100)


def forward(x, y):
    return scaler.scale(loss_of(net(x), y))


gradient = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, gradients = gradient(x, y)
    optimizer(scaler.unscale(gradients))
    scaler.adjust(ms.amp.all_finite(gradients))
    return loss


@ms.jit
def evaluate(x):
    return net(x)


for x, y in batches(3):
    #| debugger.start(net)
    loss = train_step(x, y)
    #| debugger.stop(); debugger.step()
    print(float(loss.asnumpy()), evaluate(x).shape)
tell(net)
