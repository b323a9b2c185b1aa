# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""New words are added to the table after the optimizer was made, which goes on with the old table."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops


class Words(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(24, 12), nn.Dense(12, 12), nn.Dense(12, 30)

    def construct(self, ids):
        return self.head(ops.tanh(self.body(self.embed(ids))))

    def grow(self, size):
        old = self.embed.embedding_table.asnumpy()
        more = np.random.default_rng(1).normal(size=(size - len(old), 12)).astype(np.float32)
        self.embed = nn.Embedding(
            size, 12, embedding_table=ms.Tensor(np.concatenate((old, more * 0.01)))
        )


net = Words()
if not lab.BAD:
    net.grow(30)
optimizer = nn.Adam(net.trainable_params(), 0.01)
if lab.BAD:
    net.grow(30)


def loss_of(ids):
    return ops.cross_entropy(net(ids)[:, :-1].reshape(-1, 30), ids[:, 1:].reshape(-1))


lab.train(6, optimizer, loss_of, lambda step: (lab.whole(6, 8, high=30, seed=step),))
