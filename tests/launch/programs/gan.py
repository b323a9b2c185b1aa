# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A GAN: two nets, two optimizers, and images that are made outside of the gradient."""

import mindspore as ms
from common import batches, tell
from mindspore import nn, ops

#| from probe import PrecisionDebugger; debugger = PrecisionDebugger(level="mix", dump_path="dump")


class Generator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.model = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 4))

    def construct(self, z):
        return self.model(z)


class Discriminator(nn.Cell):
    def __init__(self):
        super().__init__()
        self.model = nn.SequentialCell(nn.Dense(4, 6), nn.LeakyReLU(), nn.Dense(6, 1))

    def construct(self, x):
        return self.model(x)


ms.set_seed(1)
generator, discriminator = Generator(), Discriminator()
d_optimizer = nn.Adam(discriminator.trainable_params(), 1e-3, beta1=0.5)
g_optimizer = nn.Adam(generator.trainable_params(), 1e-3, beta1=0.5)
loss_of = nn.BCEWithLogitsLoss()


def d_forward(real, fake):
    true, false = discriminator(real), discriminator(fake)
    return loss_of(true, ops.ones_like(true)) + loss_of(false, ops.zeros_like(false))


def g_forward(z):
    judged = discriminator(generator(z))
    return loss_of(judged, ops.ones_like(judged))


d_gradient = ms.value_and_grad(d_forward, None, d_optimizer.parameters)
g_gradient = ms.value_and_grad(g_forward, None, g_optimizer.parameters)
noise = next(batches(1, seed=7))[0]
for _epoch in range(2):
    generator.set_train()
    discriminator.set_train()
    for real, _ in batches(2):
        #| debugger.start([generator, discriminator])
        fake = generator(noise)
        d_loss, gradients = d_gradient(real, fake)
        d_optimizer(gradients)
        g_loss, gradients = g_gradient(noise)
        g_optimizer(gradients)
        #| debugger.stop(); debugger.step()
        print(float(d_loss.asnumpy()), float(g_loss.asnumpy()))
    generator.set_train(False)
    print(generator(noise).mean())
tell(generator, discriminator)
