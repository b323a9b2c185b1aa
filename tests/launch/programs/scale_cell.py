# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""nn.TrainOneStepWithLossScaleCell in a loop: an update that is left out ends its step too."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import amp, nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class TrainStep(nn.TrainOneStepWithLossScaleCell):
    def get_overflow_status(self, status, compute_output):
        return ops.logical_not(amp.all_finite(compute_output))  # its own has no CPU kernel


ms.set_seed(1)
net = Net()
with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
scale = nn.DynamicLossScaleUpdateCell(1024, 2, 100)
train = TrainStep(with_loss, nn.Adam(net.trainable_params(), 1e-2), scale)
train.set_train()
for number, (x, y) in enumerate(batches(4)):
    large = x * (1e30 if number == 1 else 1)
    #| debugger.start(net)
    loss, overflow, _ = train(large, y)
    #| debugger.stop(); debugger.step()
    print(float(loss.asnumpy()), bool(overflow.asnumpy()))
tell(net)
