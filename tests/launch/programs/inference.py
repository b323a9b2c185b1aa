# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Inference: a loop that calls the model for each token."""

import mindspore as ms
from common import Net, batches, tell
from mindspore import ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_seed(1)
net = Net()
net.set_train(False)
for x, _ in batches(2):
    tokens = x
    for _token in range(2):
        #| debugger.start(net)
        y = net(tokens)
        #| debugger.stop(); debugger.step()
        tokens = ops.concat((tokens[:, 1:], y.argmax(1, keepdims=True).astype(ms.float32)), 1)
    print(tokens.asnumpy())
tell(net)
