# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dilated convolutions with gates and a condition, a masked loss, and gradients with a common clip."""

import mindspore as ms
from mindspore import Tensor, nn, ops


class Layer(nn.Cell):
    def __init__(self, c, dilation):
        super().__init__()
        self.filter = nn.Conv1d(c, c, 2, dilation=dilation, pad_mode="valid", has_bias=True)
        self.gate = nn.Conv1d(c, c, 2, dilation=dilation, pad_mode="valid", has_bias=True)
        self.res = nn.Conv1d(c, c, 1, has_bias=True)
        self.skip = nn.Conv1d(c, c, 1, has_bias=True)
        self.dilation = dilation

    def construct(self, x, cond):
        padded = ops.pad(x, (self.dilation, 0))
        h = ops.tanh(self.filter(padded) + cond) * ops.sigmoid(self.gate(padded) + cond)
        skip = self.skip(h)
        return x + self.res(h), skip


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 4)
        self.speaker = nn.Embedding(3, 4)
        self.layers = nn.CellList([Layer(4, 2**i) for i in range(3)])
        self.mix = nn.Conv1d(4, 6, 1, has_bias=True)

    def construct(self, tokens, who):
        x = self.emb(tokens).swapaxes(1, 2)
        cond = self.speaker(who).expand_dims(-1)
        total = 0
        for layer in self.layers:
            x, skip = layer(x, cond)
            total = total + skip
        total = total / len(self.layers)
        return self.mix(ops.relu(total))


def optimizer(net):
    return nn.RMSProp(net.trainable_params(), 1e-2)


def loss(net, tokens, who, lengths):
    logits = net(tokens, who)
    target = tokens[:, 1:]
    nll = ops.cross_entropy(logits[:, :, :-1], target, reduction="none")
    mask = (ops.arange(target.shape[1]) < lengths.expand_dims(1) - 1).astype(ms.float32)
    entropy = -(ops.softmax(logits, 1) * ops.log_softmax(logits, 1)).sum(1)
    return (nll * mask).sum() / mask.sum() + 0.01 * entropy.mean()


def grads(g):
    norm = ops.sqrt(sum((x * x).sum() for x in g))
    scale = ops.minimum(1.0 / (norm + 1e-6), Tensor(1.0, ms.float32))
    return tuple(x * scale for x in g)


def batch(r):
    return (
        Tensor(r.randint(0, 6, (4, 10)), ms.int32),
        Tensor(r.randint(0, 3, 4), ms.int32),
        Tensor(r.randint(4, 10, 4), ms.int32),
    )
