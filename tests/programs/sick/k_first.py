# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two statements that do not depend on each other change places (bad): nothing is wrong."""

import sick_lab as lab
from mindspore import nn, ops

B, L, H, D = 4, 6, 2, 16


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Dense(D, 3 * D), nn.Dense(D, D)

    def construct(self, x):
        q, k, v = ops.split(self.qkv(x), D, -1)
        heads, turn = (B, L, H, D // H), (0, 2, 1, 3)
        if lab.BAD:
            k = k.reshape(heads).transpose(turn)
            q = q.reshape(heads).transpose(turn)
        else:
            q = q.reshape(heads).transpose(turn)
            k = k.reshape(heads).transpose(turn)
        v = v.reshape(heads).transpose(turn)
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) / (D // H) ** 0.5
        y = ops.matmul(ops.softmax(scores, -1), v).transpose(turn).reshape(B, L, D)
        return self.out(y)


net = Attention()
optimizer = nn.SGD(net.trainable_params(), 0.1)
lab.train(
    3,
    optimizer,
    lambda x, y: ops.mse_loss(net(x), y),
    lambda step: (lab.random(B, L, D, seed=step), lab.random(B, L, D, seed=100 + step)),
)
