# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Small nets for the checks."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops

# taken before any start, so only the place that hands them to C++ can be seen
from mindspore.mint import add, cat

WIDTH = 24


def values(seed: int, *shape: int) -> Any:
    """Return a Float32 tensor of this shape."""
    return Tensor(np.random.RandomState(seed).randn(*shape).astype(np.float32))


def dense(seed: int, width: int = WIDTH) -> Any:
    """Return a dense layer whose weights depend on the seed only."""
    return nn.Dense(
        width,
        width,
        weight_init=values(seed, width, width) * 0.2,
        bias_init=values(seed + 1, width) * 0.1,
    )


class OwnBackward(nn.Cell):  # type: ignore[misc]  # MindSpore has no types
    """A Cell with a backward of its own."""

    def construct(self, x: Any) -> Any:
        """Return three times x."""
        return x * 3

    def bprop(self, x: Any, out: Any, gradient: Any) -> Any:
        """Return the gradient of x."""
        return (gradient * 3,)


class EveryWay(nn.Cell):  # type: ignore[misc]  # MindSpore has no types
    """Uses every way in which a training calls MindSpore, once."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = dense(1, 4)
        self.hooked = dense(3, 4)
        self.heavy = dense(5, 4)
        self.act = ops.ReLU()
        self.own = OwnBackward()
        self.hooked.register_forward_pre_hook(lambda cell, inputs: None)
        self.heavy.recompute()

    def construct(self, x: Any) -> Any:
        """Return a number."""
        x = self.heavy(self.hooked(self.own(self.act(self.hidden(x)))))
        x = ops.tanh(x) - 0.5
        x = ops.Sigmoid()(cat((add(x, x), x)))
        return ops.ReduceSum()(_doubled(x))


def _doubled(x: Any) -> Any:
    """Return x twice, by a function that defines its backward."""
    try:
        from mindspore.common._grad_function import _Function
    except ImportError:  # the check of private names tells it
        return x

    class Doubled(_Function):  # type: ignore[misc]  # MindSpore has no types
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * 2

    return Doubled.apply(x)


class GateCell(nn.Cell):  # type: ignore[misc]  # MindSpore has no types
    """Two Cells use the input, and the sum around them too: gradients of several users are added."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.value = dense(seed)
        self.gate = dense(seed + 2)

    def construct(self, x: Any) -> Any:
        """Return a tensor of the shape of x."""
        return self.value(x) * ops.sigmoid(self.gate(x))


class Gated(nn.Cell):  # type: ignore[misc]  # MindSpore has no types
    """A training whose last bits show each change: residuals, one tensor used four times, and views."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GateCell(10)
        self.second = GateCell(20)
        self.last = dense(30)

    def construct(self, x: Any) -> Any:
        """Return the loss."""
        x = x + self.first(x) * 0.3
        x = x + self.second(x) * 0.3
        h = self.last(x)
        h = ops.tanh(h) + h * 1e-3 + ops.exp(h * 0.1) * h + ops.square(h) * 0.7
        return h.mean() + (h[:, : WIDTH // 2] * h[:, WIDTH // 2 :]).mean()


@mindspore.jit  # type: ignore[untyped-decorator]  # MindSpore has no types
def scaled(x: Any) -> Any:
    """Return a tensor; MindSpore compiles this function."""
    return ops.tanh(x * 2.0) + x
