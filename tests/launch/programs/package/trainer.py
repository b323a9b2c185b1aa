# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A class that trains."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class Trainer:
    def __init__(self, steps):
        ms.set_seed(1)
        self.steps, self.net, self.loss = steps, Net(), nn.CrossEntropyLoss()
        self.optimizer = nn.RMSProp(self.net.trainable_params(), 1e-2)
        self.gradient = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.loss(self.net(x), y)

    def train(self):
        for x, y in batches(self.steps):
            #| debugger.start(self.net)
            loss, gradients = self.gradient(x, y)
            self.optimizer(gradients)
            #| debugger.stop(); debugger.step()
            print(float(loss.asnumpy()))
        tell(self.net)
