# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Classification of sequences by an LSTM, with an optimizer of mindspore.experimental, groups and a scheduler."""

import mindspore as ms
import numpy as np
from common import tell
from mindspore import nn, ops
from mindspore.experimental import optim

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class Rnn(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.rnn = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.fc = nn.Dense(10, 1)

    def construct(self, x):
        _, (hidden, _) = self.rnn(self.embedding(x))
        return ops.sigmoid(self.fc(ops.concat((hidden[-2], hidden[-1]), axis=1)))


ms.set_seed(1)
net = Rnn()
fc, others = net.fc.trainable_params(), [p for p in net.trainable_params() if "fc" not in p.name]
optimizer = optim.Adam([{"params": fc, "lr": 0.01}, {"params": others}], lr=0.001)
scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
loss_of = nn.BCELoss(reduction="mean")
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
random = np.random.RandomState(0)
for _epoch in range(2):
    for _ in range(2):
        x = ms.Tensor(random.randint(0, 20, (3, 4)).astype(np.int32))
        y = ms.Tensor(random.randint(0, 2, (3, 1)).astype(np.float32))
        #| debugger.start(net)
        loss, gradients = gradient(x, y)
        optimizer(gradients)
        #| debugger.stop(); debugger.step()
        print(float(loss.asnumpy()))
    scheduler.step()
    print(net(x).shape)
tell(net)
