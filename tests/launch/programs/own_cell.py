# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A Cell of the program's own for a training step; its learning rate is a schedule."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class NetWithLoss(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.loss = net, nn.CrossEntropyLoss()

    def construct(self, x, y):
        return self.loss(self.net(x), y)


class TrainStep(nn.Cell):
    def __init__(self, network, optimizer):
        super().__init__()
        self.network, self.optimizer = network, optimizer
        self.gradient = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.network(x, y)
        gradients = self.gradient(self.network, self.optimizer.parameters)(x, y)
        self.optimizer(ops.clip_by_global_norm(gradients, 1.0))
        return ops.add(loss, 0.0)


ms.set_seed(1)
whole = NetWithLoss(Net())
step = TrainStep(whole, nn.Adam(whole.trainable_params(), nn.ExponentialDecayLR(0.01, 0.9, 2)))
for x, y in batches(3):
    #| debugger.start(whole)
    loss = step(x, y)
    #| debugger.stop(); debugger.step()
    print(float(loss.asnumpy()))
tell(whole)
