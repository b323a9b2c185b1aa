# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two ranks under msrun."""

import mindspore as ms
from common import Net, batches
from mindspore import mint, nn
from mindspore.communication import get_group_size, get_rank, init

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")
ms.set_device("CPU")
init()
ms.set_seed(1)
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
for x, y in batches(2, seed=get_rank()):
    #| debugger.start(net)
    loss, gradients = gradient(x, y)
    for one in gradients:
        mint.distributed.all_reduce(one)
    optimizer(tuple(one / get_group_size() for one in gradients))
    #| debugger.stop(); debugger.step()
    print("step", get_rank(), float(loss.asnumpy()), flush=True)
