# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An LSTM over tokens with weights: their weighted mean is divided by the sums over the wrong axis."""

import mindspore.dataset as ds
import numpy as np
import sick_lab as lab
from mindspore import nn

LENGTH, WORDS, COUNT = 8, 16, 8


class Rows:
    """Sequences; the label tells whether the sum of the tokens is even."""

    def __init__(self):
        chance = np.random.default_rng(11)
        self.tokens = chance.integers(1, WORDS, (64, LENGTH)).astype(np.int32)
        self.weights = chance.uniform(0.5, 1.5, (64, LENGTH)).astype(np.float32)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, place):
        tokens = self.tokens[place]
        return tokens, self.weights[place], np.int32(tokens.sum() % 2)


class Reader(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words, self.memory = nn.Embedding(WORDS, 12), nn.LSTM(12, 12, batch_first=True)
        self.head = nn.Dense(12, 2)

    def construct(self, tokens, weights):
        states, _ = self.memory(self.words(tokens))
        total = (states * weights.expand_dims(-1)).sum(1)
        if lab.BAD:
            return self.head(total / weights.sum(0, keepdims=True).mean())
        return self.head(total / weights.sum(1, keepdims=True))


net = Reader()
net.set_train()
loss_of = nn.CrossEntropyLoss()
optimizer = nn.Adam(net.trainable_params(), 3e-3)
rows = ds.GeneratorDataset(Rows(), ["tokens", "weights", "labels"], shuffle=False).batch(COUNT)
batches = list(rows.create_tuple_iterator())
lab.train(
    8,
    optimizer,
    lambda tokens, weights, labels: loss_of(net(tokens, weights), labels),
    lambda step: batches[step],
)
