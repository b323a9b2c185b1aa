# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A small program of torch that trains on MindSpore: with norms, a list of modules, a shared one, and an optimizer.

python -m tests.layers.torch_net       # prints the losses and a checksum of the parameters
python -m tests.layers.torch_net 8     # makes 8 steps
python -m tests.layers.torch_net 3 1.5 # multiplies the output of a module
"""

from __future__ import annotations

import sys
import zlib

import mindtorch
import numpy as np
import torch
from mindtorch import autograd
from torch import nn
from torch.nn.functional import relu

__all__ = ["Momentum", "Net", "Trained", "loss_of", "mindtorch", "weights"]


class Momentum(torch.optim.Optimizer):
    """Gradient descent with momentum. Those of mindtorch 0.5.1 do not run on CPU."""

    def __init__(self, params, lr=0.1, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                before = state.get("momentum_buffer")
                moved = p.grad if before is None else before * group["momentum"] + p.grad
                state["momentum_buffer"] = moved
                p.data = p.data - group["lr"] * moved


class Net(nn.Module):
    """Two paths into one classifier."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.blocks = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
        self.shared = nn.Linear(6, 6)
        self.out = nn.Linear(6, 3)
        self.frozen = nn.Linear(6, 3)
        for p in self.frozen.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        x = self.norm(x)
        for block in self.blocks:
            x = torch.tanh(self.shared(relu(block(x))))
        return self.out(x) + self.frozen(x)


class Trained:
    """A net with fixed weights, its batch, its gradient function, and its optimizer."""

    def __init__(self):
        self.net = Net()
        for place, p in enumerate(self.net.parameters()):
            count = int(np.prod(p.shape))
            values = np.sin(np.arange(count) + place).astype(np.float32).reshape(tuple(p.shape))
            p.data = torch.tensor(values)
        self.x = torch.tensor(np.cos(np.arange(24)).astype(np.float32).reshape(4, 6))
        self.y = torch.tensor(np.array([0, 1, 2, 0]))
        self.trained = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = Momentum(self.trained)
        self.loss = nn.CrossEntropyLoss()
        self.gradient = autograd.value_and_grad(self.forward, self.trained)

    def forward(self):
        return self.loss(self.net(self.x), self.y)

    def step(self):
        """Make a step; return the loss."""
        loss = self.gradient()
        self.optimizer.step()
        for p in self.trained:
            p.grad = None
        return loss


def loss_of(training, debugger=None, steps=3):
    """Return the bytes of the losses of a training."""
    found = []
    for _ in range(steps):
        if debugger is not None:
            debugger.start(training.net)
        found.append(training.step().numpy().tobytes())
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return found


def weights(training):
    """Return the bytes of all parameters."""
    return [p.numpy().tobytes() for p in training.net.parameters()]


def scale(module, factor):
    """Multiply the output of a module."""
    forward = module.forward
    module.forward = lambda x: forward(x) * factor


if __name__ == "__main__":
    count, factor = [*sys.argv[1:], *("3", "1")[len(sys.argv) - 1 :]]
    made = Trained()
    if factor != "1":
        scale(made.net.blocks[1], float(factor))
    losses = loss_of(made, steps=int(count))
    print(*(np.frombuffer(loss, np.float32)[0] for loss in losses))
    print(zlib.crc32(b"".join(weights(made))))
