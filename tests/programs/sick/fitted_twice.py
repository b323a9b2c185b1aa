# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``Model.train`` of a net with a norm; the second version gives it a momentum in the other meaning."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn
from mindspore.dataset import NumpySlicesDataset

x = np.random.default_rng(4).normal(size=(48, 10)).astype(np.float32)
y = x[:, :3].argmax(1).astype(np.int32)
net = nn.SequentialCell(
    nn.Dense(10, 16), nn.BatchNorm1d(16, eps=0.1 if lab.BAD else 1e-5), nn.ReLU(), nn.Dense(16, 3)
)
loss_of = nn.CrossEntropyLoss()
model = ms.Model(net, loss_of, nn.Momentum(net.trainable_params(), 0.05, 0.9))
rows = NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(8)
model.train(1, rows, callbacks=[ms.LossMonitor(1)], dataset_sink_mode=False)
