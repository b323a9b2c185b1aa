# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The gradients of three batches make an update."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.AdamWeightDecay(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
total = None
#| debugger.start(net)
for number, (x, y) in enumerate(batches(6)):
    loss, gradients = gradient(x, y)
    total = gradients if total is None else tuple(ops.add(a, b) for a, b in zip(total, gradients))
    if number % 3 == 2:
        optimizer(total)
        #| debugger.stop(); debugger.step()
        total = None
        print(float(loss.asnumpy()))
        #| if number < 5: debugger.start(net)
tell(net)
