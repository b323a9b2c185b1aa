# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two groups of parameters; the schedule of the head's learning rate was made for epochs, and is read in steps."""

import sick_lab as lab
from mindspore import nn

net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
net.set_train()
body, head = net[0].trainable_params(), net[2].trainable_params()
steps, epochs = 4, 3
rates = nn.cosine_decay_lr(0.001, 0.05, steps * epochs, 1 if lab.BAD else steps, epochs)
optimizer = nn.Momentum([{"params": body}, {"params": head, "lr": rates}], 0.05, 0.9)
lab.train(
    6,
    optimizer,
    lambda x, y: ((net(x) - y) ** 2).mean(),
    lambda step: (lab.random(5, 4, seed=step), lab.random(5, 2, seed=50 + step)),
)
