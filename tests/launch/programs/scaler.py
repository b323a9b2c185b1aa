# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""auto_mixed_precision and DynamicLossScaler: the second update is left out, as its gradients have Inf."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import amp, nn

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = amp.auto_mixed_precision(Net(), "O2")
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
scaler = amp.DynamicLossScaler(1024, 2, 100)


def forward(x, y):
    return scaler.scale(loss_of(net(x), y))


#| continue_at = 0
gradient = ms.value_and_grad(forward, None, optimizer.parameters)
for number, (x, y) in enumerate(batches(4)):
    large = x * (1e9 if number == 1 else 1)
    #| debugger.start(net)
    loss, gradients = gradient(large, y)
    is_finite = amp.all_finite(gradients)
    if is_finite:
        optimizer(scaler.unscale(gradients))
        #| debugger.stop(); debugger.step()
        #| continue_at = number + 1
    scaler.adjust(is_finite)
    #| if continue_at <= number: debugger.step()
    print(float(scaler.unscale(loss).asnumpy()), scaler.scale_value.asnumpy())
tell(net)
