# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program that was written for msprobe, without a word of probe."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn
from msprobe.mindspore import MsprobeStep, PrecisionDebugger, seed_all

seed_all(seed=1234, mode=False)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
debugger = PrecisionDebugger(task="statistics", dump_path="dump", level="L1", step=[1])
for x, y in batches(2):
    debugger.start(net)
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    debugger.stop()
    debugger.step()
    print(float(loss.asnumpy()))
print(MsprobeStep(debugger) is not None)
tell(net)
