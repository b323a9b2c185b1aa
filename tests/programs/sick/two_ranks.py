# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two ranks whose gradients are averaged; each has drawn weights of its own."""

import mindspore as ms
import sick_lab as lab
from mindspore import mint, nn
from mindspore.communication import get_group_size, get_rank, init

init()
if lab.BAD:
    ms.set_seed(1 + get_rank())
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 3))
net.set_train()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.SGD(net.trainable_params(), 0.05)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
for step in range(4):
    seed = 10 * step + get_rank()
    loss, gradients = gradient(lab.random(4, 8, seed=seed), lab.whole(4, high=3, seed=seed))
    for one in gradients:
        mint.distributed.all_reduce(one)
    optimizer(tuple(one / get_group_size() for one in gradients))
    print(get_rank(), step, float(loss))
