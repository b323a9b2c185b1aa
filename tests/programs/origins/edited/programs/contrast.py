# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two towers learn to agree: gated states and a convolution, contrast in both directions, a critic, entropy."""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Recurrent(nn.Cell):
    def __init__(self, given, width):
        super().__init__()
        self.x = nn.Dense(given, 3 * width)
        self.h = nn.Dense(width, 3 * width)
        self.width = width

    def construct(self, x, length):
        h = ops.zeros((x.shape[0], self.width), ms.float32)
        states = []
        for t in range(x.shape[1]):
            rx, zx, nx = ops.split(self.x(x[:, t]), self.width, -1)
            rh, zh, nh = ops.split(self.h(h), self.width, -1)
            r = ops.sigmoid(rx + rh)
            z = ops.sigmoid(zx + zh)
            new = ops.tanh(nx + r * nh)
            new = (1 - z) * new + z * h
            alive = (length > t).astype(ms.float32).expand_dims(-1)
            h = alive * new + (1 - alive) * h
            states.append(h)
        return h, ops.stack(states, 1)


class Convolved(nn.Cell):
    def __init__(self, given, width):
        super().__init__()
        self.one = nn.Conv1d(given, width, 3, pad_mode="pad", padding=1, has_bias=True)
        self.norm = nn.BatchNorm1d(width)
        self.two = nn.Conv1d(width, width, 3, pad_mode="pad", padding=2, dilation=2, has_bias=True)

    def construct(self, x):
        x = x.swapaxes(1, 2)
        y = ops.relu(self.one(x))
        y = self.two(y) + y
        y = ops.amax(y, -1)
        return self.norm(y)


class Pool(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.ask = Parameter(Tensor(np.ones((heads, width)), ms.float32), name="ask")
        self.mix = nn.Dense(heads * width, width)

    def construct(self, states, mask):
        score = ops.matmul(states, self.ask.T)
        score = score - (1 - mask).expand_dims(-1) * 1e9
        share = ops.softmax(score, 1)
        seen = ops.matmul(share.swapaxes(1, 2), states)
        return self.mix(seen.reshape(seen.shape[0], -1))


class Net(nn.Cell):
    def __init__(self, given=5, width=8):
        super().__init__()
        self.left = Recurrent(given, width)
        self.pool = Pool(width, 2)
        self.right = Convolved(given, width)
        self.to_left = nn.Dense(width, 6)
        self.to_right = nn.Dense(width, 6)
        self.heat = Parameter(Tensor([1.5], ms.float32), name="heat")
        self.policy = nn.Dense(width, 4)
        self.critic = nn.SequentialCell(nn.Dense(width, 8), nn.Tanh(), nn.Dense(8, 1))

    def construct(self, x, y, length):
        mask = (ops.arange(x.shape[1]) < length.expand_dims(-1)).astype(ms.float32)
        last, states = self.left(x, length)
        pooled = self.pool(states, mask)
        a = self.to_left(last + pooled)
        b = self.to_right(self.right(y))
        return a, b, ops.exp(self.heat), self.policy(pooled), self.critic(pooled).squeeze(-1)


def unit(x):
    return x / ops.sqrt((x * x).sum(-1, keepdims=True) + 1e-8)


def contrast(a, b, heat):
    sim = ops.matmul(unit(a), unit(b).T) * heat
    target = ops.arange(sim.shape[0]).astype(ms.int32)
    forth = ops.cross_entropy(sim, target)
    back = ops.cross_entropy(sim.T, target)
    return (forth + back) / 2


def returns(reward, done, rate=0.9):
    total = ops.zeros_like(reward[:, 0])
    found = []
    for t in reversed(range(reward.shape[1])):
        total = reward[:, t] + rate * total * (1 - done[:, t])
        found.insert(0, total)
    return ops.stack(found, 1)


def optimizer(net):
    return nn.RMSProp(net.trainable_params(), 0.01, decay=0.9, momentum=0.5)


def loss(net, x, y, length, action, reward, done):
    a, b, heat, policy, value = net(x, y, length)
    gained = returns(reward, done)[:, 0]
    advantage = ops.stop_gradient(gained - value)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-5)
    logp = ops.log_softmax(policy, -1)
    taken = ops.gather_elements(logp, 1, action.expand_dims(-1)).squeeze(-1)
    gain = -(taken * advantage).mean()
    entropy = -(ops.exp(logp) * logp).sum(-1).mean()
    error = ops.square(value - gained).mean()
    return contrast(a, b, heat) + gain + 0.5 * error - 0.01 * entropy


def batch(r):
    return (
        Tensor(r.randn(4, 6, 5), ms.float32),
        Tensor(r.randn(4, 7, 5), ms.float32),
        Tensor(r.randint(2, 7, 4), ms.int32),
        Tensor(r.randint(0, 4, 4), ms.int32),
        Tensor(r.rand(4, 5), ms.float32),
        Tensor((r.rand(4, 5) < 0.2).astype(np.float32)),
    )
