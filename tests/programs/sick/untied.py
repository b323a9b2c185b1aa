# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The head of a language model should be its table of words, and got a copy of it."""

import mindspore as ms
import sick_lab as lab
from mindspore import nn, ops


class Model(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.body = nn.Embedding(20, 12), nn.Dense(12, 12)
        table = self.words.embedding_table
        self.head = ms.Parameter(table.value().copy(), name="head") if lab.BAD else table

    def construct(self, ids):
        return ops.matmul(ops.tanh(self.body(self.words(ids))), self.head.T)


net = Model()
net.set_train()


def loss_of(ids):
    return ops.cross_entropy(net(ids)[:, :-1].reshape(-1, 20), ids[:, 1:].reshape(-1))


lab.train(
    6,
    nn.Adam(net.trainable_params(), 0.01),
    loss_of,
    lambda step: (lab.whole(6, 8, high=20, seed=step),),
)
