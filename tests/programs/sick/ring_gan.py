# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A GAN on points of a ring: the generator has no gradient, as its images are cut from its loss too."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops

NOISE, COUNT = 8, 24


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Dense(NOISE, 24), nn.BatchNorm1d(24), nn.Dense(24, 2)

    def construct(self, noise):
        return self.last(ops.relu(self.norm(self.first(noise))))


class Judge(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(2, 24), nn.Dense(24, 1)

    def construct(self, points):
        return self.last(ops.leaky_relu(self.first(points), 0.2))


made, judge = Generator(), Judge()
made.set_train()
judge.set_train()
optimizer_made = nn.Adam(made.trainable_params(), 2e-3, beta1=0.5)
optimizer_judge = nn.Adam(judge.trainable_params(), 1e-3, beta1=0.5)
compare = nn.BCEWithLogitsLoss()


def loss_of_judge(points, noise):
    true, false = judge(points), judge(ops.stop_gradient(made(noise)))
    return compare(true, ops.full_like(true, 0.9)) + compare(false, ops.zeros_like(false))


def loss_of_made(noise):
    points = made(noise)
    if lab.BAD:
        points = ops.stop_gradient(points)  # copied from the other loss
    judged = judge(points)
    return compare(judged, ops.ones_like(judged))


of_judge = ms.value_and_grad(loss_of_judge, None, optimizer_judge.parameters)
of_made = ms.value_and_grad(loss_of_made, None, optimizer_made.parameters)
for step in range(8):
    angle = np.random.default_rng(step).uniform(0, 2 * np.pi, COUNT)
    ring = ms.Tensor(np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32))
    noise = lab.random(COUNT, NOISE, seed=100 + step)
    first, gradients = of_judge(ring, noise)
    optimizer_judge(gradients)
    second, gradients = of_made(noise)
    optimizer_made(gradients)
    print(step, float(first), float(second))
