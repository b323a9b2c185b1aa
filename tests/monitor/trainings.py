# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings for the monitor: healthy ones, and ones with a trouble from some step on."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.experimental import optim

SIZES = (16, 32, 32, 32, 32, 4)


class Net(nn.Cell):
    """A perceptron; ``scales`` multiplies the outputs of its layers."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.layers = nn.CellList([nn.Dense(a, b) for a, b in zip(SIZES, SIZES[1:])])
        self.scales, self.dropout = (
            [1.0] * len(self.layers),
            nn.Dropout(p=dropout) if dropout else None,
        )

    def construct(self, x):
        for place, layer in enumerate(self.layers):
            x = layer(x) * self.scales[place]
            if place < len(self.layers) - 1:
                x = ops.relu(x)
                if self.dropout is not None:
                    x = self.dropout(x)
        return x


class Training:
    """One training; ``run`` calls ``before(step)`` before each step.

    Args:
        seed: of weights and data.
        optimizer: parameters -> optimizer.
        dropout: the part of each layer's outputs that is dropped.
        accumulate: the number of batches of one update.
    """

    def __init__(self, seed, optimizer=None, dropout=0.0, accumulate=1):
        ms.set_seed(seed)
        self.random = np.random.default_rng(seed)
        self.centres = self.random.normal(size=(SIZES[-1], SIZES[0])).astype(np.float32)
        self.net = Net(dropout)
        make = optimizer or (lambda parameters: nn.Adam(parameters, 1e-3))
        self.optimizer = make(self.net.trainable_params())
        loss = nn.CrossEntropyLoss()
        self.grad = ms.value_and_grad(
            lambda x, y: loss(self.net(x), y), None, self.optimizer.parameters
        )
        self.accumulate, self.change, self.after = (
            accumulate,
            lambda step, x, y: (x, y),
            lambda step: None,
        )
        self.gradients = lambda step, gradients: gradients

    def batch(self, step):
        y = self.random.integers(0, SIZES[-1], 32)
        x = self.centres[y] + self.random.normal(size=(32, SIZES[0])).astype(np.float32)
        x, y = self.change(step, x.astype(np.float32), y.astype(np.int32))
        return ms.Tensor(x), ms.Tensor(y)

    def step(self, step):
        total = None
        for _ in range(self.accumulate):
            loss, gradients = self.grad(*self.batch(step))
            total = gradients if total is None else tuple(a + b for a, b in zip(total, gradients))
        self.optimizer(self.gradients(step, total))
        self.after(step)
        return loss


def _rates():
    return [
        1e-3 * min((step + 1) / 50, 0.5 * (1 + math.cos(math.pi * step / 500)))
        for step in range(501)
    ]


#: name -> a training of which the monitor may say nothing
HEALTHY = {
    "warm-up and cosine": lambda: Training(
        1, lambda parameters: nn.AdamWeightDecay(parameters, _rates())
    ),
    "momentum": lambda: Training(2, lambda parameters: nn.Momentum(parameters, 0.05, 0.9)),
    "dropout and augmentation": lambda: _augmented(Training(3, dropout=0.3)),
    "accumulation": lambda: Training(4, accumulate=4),
    "AdamW of experimental": lambda: Training(
        5, lambda parameters: optim.AdamW(parameters, lr=3e-3)
    ),
    "gan": lambda: Gan(6),
}


def _augmented(training):
    training.change = lambda step, x, y: (x * training.random.uniform(0.7, 1.3), y)
    return training


class Gan:
    """A generator and a discriminator of one-dimensional data, each with its optimizer."""

    def __init__(self, seed):
        ms.set_seed(seed)
        self.random = np.random.default_rng(seed)
        generator = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 2))
        critic = nn.SequentialCell(nn.Dense(2, 32), nn.LeakyReLU(0.2), nn.Dense(32, 1))
        self.net = nn.CellList([generator, critic])
        self.net.update_parameters_name("gan.")
        bce = nn.BCEWithLogitsLoss()
        self.first = nn.Adam(generator.trainable_params(), 1e-3)
        self.second = nn.Adam(critic.trainable_params(), 1e-3)

        def lie(z):
            guess = critic(generator(z))
            return bce(guess, ops.ones_like(guess))

        def judge(z, real):
            false, true = critic(ops.stop_gradient(generator(z))), critic(real)
            return bce(false, ops.zeros_like(false)) + bce(true, ops.ones_like(true))

        self.lie = ms.value_and_grad(lie, None, self.first.parameters)
        self.judge = ms.value_and_grad(judge, None, self.second.parameters)

    def step(self, step):
        z = ms.Tensor(self.random.normal(size=(32, 8)).astype(np.float32))
        real = ms.Tensor((self.random.normal(size=(32, 2)) * 0.3 + 1).astype(np.float32))
        loss, gradients = self.judge(z, real)
        self.second(gradients)
        _, gradients = self.lie(z)
        self.first(gradients)
        return loss


TROUBLE = 60
#: name -> (training, parts of series that may be named, steps that the alarm may be late)
TROUBLES = {}


def _trouble(name, parts, late):
    def add(make):
        TROUBLES[name] = lambda: (make(), parts, late)
        return make

    return add


@_trouble("bad batch", ("loss", "grad", "global_norm"), 2)
def _bad_batch():
    training = Training(11)
    training.change = lambda step, x, y: (x * 100 if step == TROUBLE else x, y)
    return training


@_trouble("NaN in one batch", ("loss", "grad"), 2)
def _nan_batch():
    def change(step, x, y):
        if step == TROUBLE:
            x[3, 4] = np.nan
        return x, y

    training = Training(12)
    training.change = change
    return training


@_trouble("exploding layer", ("loss", "grad", "global_norm"), 20)
def _exploding():
    def explode(step):
        if step >= TROUBLE:
            training.net.scales[2] *= 1.5

    training = Training(13)
    training.after = explode
    return training


@_trouble("dying ReLUs", ("layers.0", "layers.1", "layers.2"), 20)
def _dying():
    def die(step):
        if step == TROUBLE:
            bias = training.net.layers[1].bias
            bias.set_data(bias - 1000)

    training = Training(14)
    training.after = die
    return training


@_trouble("frozen layer", ("layers.2",), 20)
def _frozen():
    training = Training(15)
    training.gradients = lambda step, gradients: tuple(
        ops.zeros_like(gradient) if step >= TROUBLE and place in (4, 5) else gradient
        for place, gradient in enumerate(gradients)
    )
    return training


@_trouble(
    "learning rate ten times too large",
    ("learning_rate", "loss", "grad", "update", "global_norm"),
    20,
)
def _rate():
    return Training(
        16, lambda parameters: nn.Momentum(parameters, [0.02] * TROUBLE + [0.5] * 300, 0.9)
    )


@_trouble("loss scale collapsing", ("loss_scale",), 20)
def _collapsing():
    return Scaled(17)


@_trouble("a gradient that vanishes", ("layers.0", "layers.1", "layers.2", "loss"), 20)
def _vanishing():
    def shrink(step):
        if step >= TROUBLE:
            training.net.scales[1] = max(training.net.scales[1] * 0.3, 1e-9)

    training = Training(19)
    training.after = shrink
    return training


@_trouble("weights that drift", ("layers.3",), 20)
def _drifting():
    def drift(step):
        if step >= TROUBLE:
            weight = training.net.layers[3].weight
            weight.set_data(weight * 1.1)

    training = Training(20)
    training.after = drift
    return training


class Scaled(Training):
    """A training with dynamic loss scale, whose gradients overflow from a step on."""

    def __init__(self, seed):
        super().__init__(seed)
        self.scaler = ms.amp.DynamicLossScaler(scale_value=2**12, scale_factor=2, scale_window=50)
        loss = nn.CrossEntropyLoss()
        self.grad = ms.value_and_grad(
            lambda x, y: self.scaler.scale(loss(self.net(x), y)), None, self.optimizer.parameters
        )

    def step(self, step):
        loss, gradients = self.grad(*self.batch(step))
        gradients = self.scaler.unscale(gradients)
        fine = step < TROUBLE
        if fine:
            self.optimizer(gradients)
        self.scaler.adjust(ms.Tensor(fine))
        return loss
