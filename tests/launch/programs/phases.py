# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two nets and two optimizers, one after the other."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
nets = [Net(8), Net(6)]
optimizers = [nn.SGD(net.trainable_params(), 1e-2) for net in nets]
loss_of = nn.CrossEntropyLoss()
for net, optimizer in zip(nets, optimizers):
    gradient = ms.value_and_grad(
        lambda x, y, net=net: loss_of(net(x), y), None, optimizer.parameters
    )
    for x, y in batches(2):
        #| debugger.start(nets)
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        #| debugger.stop(); debugger.step()
        print(float(loss.asnumpy()))
tell(*nets)
