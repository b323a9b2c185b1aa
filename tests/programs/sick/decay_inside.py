# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""AdamWeightDecay is replaced by Adam with the same decay, which adds it to the gradients."""

import sick_lab as lab
from mindspore import nn

net = nn.SequentialCell(nn.Dense(6, 12), nn.Tanh(), nn.Dense(12, 3))
net.set_train()
kind = nn.Adam if lab.BAD else nn.AdamWeightDecay
optimizer = kind(net.trainable_params(), 0.01, eps=1e-8, weight_decay=0.1)
loss_of = nn.CrossEntropyLoss()
lab.train(
    6,
    optimizer,
    lambda x, y: loss_of(net(x), y),
    lambda step: (lab.random(12, 6, seed=step), lab.whole(12, high=3, seed=step)),
)
