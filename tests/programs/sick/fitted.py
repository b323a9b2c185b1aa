# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``Model.train`` with a loss of its own, which takes the logarithm of a probability that has become zero."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


class Surprise(nn.Cell):
    def construct(self, logits, labels):
        chances = ops.softmax(logits, -1)
        if not lab.BAD:
            chances = ops.clamp(chances, 1e-7, 1.0)
        return -(ops.log(chances) * ops.one_hot(labels, 4)).sum(-1).mean()


x = np.random.default_rng(2).normal(size=(64, 6)).astype(np.float32)
x[40:] *= 4000.0
y = np.abs(x[:, :4]).argmin(1).astype(np.int32)
net = nn.SequentialCell(nn.Dense(6, 12), nn.ReLU(), nn.Dense(12, 4))
model = ms.Model(net, Surprise(), nn.SGD(net.trainable_params(), 0.05))
rows = NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(8)
model.train(1, rows, callbacks=[ms.LossMonitor(1)], dataset_sink_mode=False)
