# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A frozen body and a new head; a class trains and tests. Another Cell around the net is used by tests only."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class Predictor(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x):
        return ops.softmax(self.net(x), -1)


class Trainer:
    def __init__(self, net):
        self.net, self.loss = net, nn.CrossEntropyLoss()
        for parameter in net.hidden.get_parameters():
            parameter.requires_grad = False
        self.optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        self.gradient = ms.value_and_grad(self.forward, None, self.optimizer.parameters)
        self.predictor = Predictor(net)

    def forward(self, x, y):
        return self.loss(self.net(x), y)

    def fit(self):
        self.net.set_train()
        for x, y in batches(2):
            #| debugger.start(self.net)
            loss, gradients = self.gradient(x, y)
            self.optimizer(gradients)
            #| debugger.stop(); debugger.step()
            print(float(loss.asnumpy()))

    def test(self):
        for x, _ in batches(2, seed=3):
            print(self.predictor(x).argmax(1).asnumpy())


ms.set_seed(1)
trainer = Trainer(Net())
trainer.test()
for _epoch in range(2):
    trainer.fit()
    trainer.test()
tell(trainer.net)
