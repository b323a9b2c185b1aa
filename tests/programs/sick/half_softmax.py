# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Large scores are cast to half precision before the softmax: neighbours become equal."""

import mindspore as ms
import sick_lab as lab
from mindspore import nn, ops


class Chooser(nn.Cell):
    def __init__(self):
        super().__init__()
        self.enter, self.last = nn.Dense(6, 16), nn.Dense(16, 3)

    def construct(self, x):
        scores = self.enter(x) + 3000.0
        if lab.BAD:
            scores = scores.astype(ms.float16)
        return self.last(ops.softmax(scores, -1).astype(ms.float32))


net = Chooser()
net.set_train()
loss_of = nn.CrossEntropyLoss()
lab.train(
    6,
    nn.Adam(net.trainable_params(), 0.02),
    lambda x, y: loss_of(net(x), y),
    lambda step: (lab.random(10, 6, seed=step), lab.whole(10, high=3, seed=step)),
)
