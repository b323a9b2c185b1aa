# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A critic is trained twice as often as the generator: each update is a step, after the first two."""

import mindspore as ms
from common import batches, tell
from mindspore import nn, ops


class CriticLoss(nn.Cell):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic

    def construct(self, x):
        return ops.sub(
            self.critic(ops.stop_gradient(self.generator(x))).mean(), self.critic(x).mean()
        )


class GeneratorLoss(nn.Cell):
    def __init__(self, generator, critic):
        super().__init__()
        self.generator, self.critic = generator, critic

    def construct(self, x):
        return ops.neg(self.critic(self.generator(x)).mean())


ms.set_seed(1)
generator, critic = nn.SequentialCell(nn.Dense(4, 4)), nn.SequentialCell(nn.Dense(4, 1))
g_optimizer, c_optimizer = (
    nn.RMSProp(generator.trainable_params()),
    nn.RMSProp(critic.trainable_params()),
)
train_critic = nn.TrainOneStepCell(CriticLoss(generator, critic), c_optimizer)
train_generator = nn.TrainOneStepCell(GeneratorLoss(generator, critic), g_optimizer)
for number, (x, _) in enumerate(batches(4)):
    print(train_critic(x))
    if number % 2:
        print(train_generator(x))
tell(generator, critic)
