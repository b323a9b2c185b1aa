# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Places of a long text are cast to half precision before their angles are computed."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops


class Turned(nn.Cell):
    def __init__(self):
        super().__init__()
        self.enter, self.last = nn.Dense(8, 8), nn.Dense(8, 3)
        self.speeds = ms.Tensor(np.linspace(0.1, 1.0, 8).astype(np.float32))

    def construct(self, x, places):
        if lab.BAD:
            places = places.astype(ms.float16)
        angles = ops.outer(places.astype(ms.float32), self.speeds)
        return self.last(self.enter(x) * ops.cos(angles))


net = Turned()
net.set_train()
places = ms.Tensor(np.arange(2100, 2124), ms.int32)
optimizer = nn.Adam(net.trainable_params(), 0.01)
lab.train(
    6,
    optimizer,
    lambda x, y: ops.cross_entropy(net(x, places), y),
    lambda step: (lab.random(24, 8, seed=step), lab.whole(24, high=3, seed=step)),
)
