# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program under msprobe's monitor, without a word of probe."""

import json

import mindspore as ms
from common import Net, batches, tell
from mindspore import nn
from msprobe.mindspore import TrainerMon

with open("monitor.json", "w") as file:
    json.dump(
        {"targets": {}, "wg_distribution": True, "param_distribution": True, "ops": ["norm"]}, file
    )
net = Net()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 1e-2)
gradient = ms.value_and_grad(lambda x, y: loss_of(net(x), y), None, optimizer.parameters)
monitor = TrainerMon("monitor.json", params_have_main_grad=False)
monitor.set_monitor(net, optimizer)
for x, y in batches(2):
    loss, gradients = gradient(x, y)
    optimizer(gradients)
    print(float(loss.asnumpy()))
tell(net)
