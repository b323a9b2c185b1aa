# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""nn.TrainOneStepCell around nn.WithLossCell, and an evaluation in training mode."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
train = nn.TrainOneStepCell(
    nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9)
)
train.set_train()
for x, y in batches(3):
    #| debugger.start(net)
    loss = train(x, y)
    #| debugger.stop(); debugger.step()
    print(float(loss.asnumpy()), net(x).argmax(1).asnumpy())
tell(net)
