# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Padding has the number of the end of a text, so the labels of all ends are left out."""

import mindspore as ms
import numpy as np
import sick_lab as lab
from mindspore import nn, ops

END, WORDS = 1, 30


class Words(nn.Cell):
    def __init__(self):
        super().__init__()
        self.embed, self.body, self.head = (
            nn.Embedding(WORDS, 16),
            nn.Dense(16, 16),
            nn.Dense(16, WORDS),
        )

    def construct(self, ids):
        x = self.embed(ids)
        return self.head(ops.tanh(self.body(x + ops.cumsum(x, 1))))


def collate(step):
    rng = np.random.default_rng(step)
    ids, length = np.full((6, 12), END), rng.integers(5, 11, 6)
    for row, size in zip(ids, length):
        row[:size] = rng.integers(2, WORDS, size)
    if lab.BAD:
        labels = np.where(ids == END, -100, ids)
    else:
        labels = np.where(np.arange(12) > length[:, None], -100, ids)
    return ms.Tensor(ids, ms.int32), ms.Tensor(labels, ms.int32)


net = Words()


def loss_of(ids, labels):
    return ops.cross_entropy(
        net(ids)[:, :-1].reshape(-1, WORDS), labels[:, 1:].reshape(-1), ignore_index=-100
    )


lab.train(6, nn.Adam(net.trainable_params(), 0.01), loss_of, collate)
