# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Trainings whose loss uses a transform that MindSpore compiles or parses: jvp, jacfwd, ``@jit`` of a gradient, …

The model has a shared, a frozen and a hooked Parameter; the hook is the training's own.
"""

from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.ops.function.grad.grad_func import custom_vjp, linearize

from tests.support.training import bytes_of


class Net(nn.Cell):
    """Two Dense share a weight, the last bias is frozen, and the training hooks the first weight."""

    def __init__(self):
        super().__init__()
        self.first = nn.Dense(6, 8)
        self.middle = nn.Dense(8, 8)
        self.tied = nn.Dense(8, 8)
        self.tied.weight = self.middle.weight
        self.last = nn.Dense(8, 1)
        self.last.bias.requires_grad = False
        self.first.weight.register_hook(twice)

    def construct(self, x):
        return self.last(ops.tanh(self.tied(ops.tanh(self.middle(ops.tanh(self.first(x)))))))


def twice(gradient):
    """The hook of the training, which MindSpore's compiler reads."""
    return gradient * 2


class Own(nn.Cell):
    """A Cell with a bprop of its own."""

    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (2 * x * dout,)


def _square(x):
    return x * x


def _square_backward(x, out, dout):
    return (2 * x * dout,)


class Compiled(nn.Cell):
    """A Cell whose construct is compiled, around the model."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    @ms.jit
    def construct(self, x):
        return self.net(x)


class Transforms:
    """The transforms of one model: each method takes an input and returns a tensor, or what has tensors."""

    def __init__(self, net):
        self.net = net
        self._compiled = ms.jit(self.total)
        self._cell = Compiled(net)
        self._with_weight = ms.jit(_weighted)
        self._bytecode = ms.jit(self._function(self.total), capture_mode="bytecode")
        self._traced = ms.jit(self._function(self.total), capture_mode="trace")

    def total(self, x):
        return self.net(x).sum()

    def waves(self, x):
        return ops.sin(self.net(x))

    def jvp(self, x):
        waves = self._function(self.waves)
        return ms.jvp(waves, x, ops.ones_like(x))[1]

    def vjp(self, x):
        return ms.vjp(self.waves, x)[1](ops.ones((x.shape[0], 1), ms.float32))[0]

    def jacrev(self, x):
        return ms.jacrev(self._function(self.waves))(x)

    def jacfwd(self, x):
        return ms.jacfwd(self._function(self.waves))(x)

    def vmap(self, x):
        return ms.vmap(self.net)(x)

    def linearize(self, x):
        return linearize(self.net, x)[1](ops.ones_like(x))

    def gradient_of_jit(self, x):
        return ms.grad(self._compiled)(x)

    def gradient_of_jit_by_weights(self, x):
        return ms.grad(self._compiled, None, self.net.trainable_params())(x)

    def jit_of_gradient(self, x):
        return ms.jit(ms.grad(self._function(self.total)))(x)

    def jit_in_a_cell(self, x):
        return self._cell(x)

    def jit_of_a_parameter(self, x):
        return self._with_weight(x, self.net.first.weight)

    def jit_of_bytecode(self, x):
        return self._bytecode(x)

    def jit_by_trace(self, x):
        return self._traced(x)

    def gradient_operation(self, x):
        return ops.GradOperation()(self._compiled)(x)

    def gradient_operation_of_a_cell(self, x):
        return ops.GradOperation(get_by_list=True)(
            self.net, ms.ParameterTuple(self.net.trainable_params())
        )(x)

    def own_bprop(self, x):
        return ms.grad(self._function(lambda_free(Own(), self.net)))(x)

    def custom_vjp(self, x):
        square = custom_vjp(_square)
        square.defbwd(_square_backward)
        return ms.grad(self._function(lambda_free(square, self.net)))(x)

    def hessian(self, x):
        return ms.grad(self._function(lambda_free(ops.ReduceSum(), ms.grad(self.total))))(x)

    def hessian_by_jacfwd(self, x):
        return ms.jacfwd(ms.grad(self._function(self.total)))(x)

    def cell_compile(self, x):
        self._cell.compile(x)
        return ops.zeros((1,), ms.float32)

    @staticmethod
    def _function(method):
        """MindSpore parses a function, and no bound method."""

        def function(x):
            return method(x)

        return function


def lambda_free(outer, inner):
    """Return the composition of two functions, which MindSpore can parse: a lambda it cannot."""

    def function(x):
        return outer(inner(x))

    return function


def _weighted(x, weight):
    return ops.matmul(x, weight.T).sum()


#: all transforms
NAMES = [
    name for name in vars(Transforms) if not name.startswith("_") and name not in ("total", "waves")
]
X = np.random.RandomState(0).randn(4, 6)


def train(name, debugger=None, steps=2):
    """Train with a transform in the loss, after stop, and after step; return the bytes of all that was computed.

    The model runs before the transform, so that a dump has met its Parameters.
    """
    net = Net()
    generator = np.random.RandomState(1)
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(generator.randn(*parameter.shape) / 3, ms.float32))
    transform = getattr(Transforms(net), name)

    def loss_of(x):
        slope = (ms.grad(Transforms(net).total)(x) ** 2).mean()
        found = transform(x)
        found = found if isinstance(found, (tuple, list)) else [found]
        return slope + sum((value**2).mean() for value in found)

    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    gradient = ms.value_and_grad(loss_of, None, optimizer.parameters)
    seen = []
    for step in range(steps):
        x = Tensor(X + step, ms.float32)
        if debugger is not None:
            debugger.start(net)
        loss, gradients = gradient(x)
        if debugger is not None:
            debugger.stop()
        after_stop = transform(x)
        optimizer(gradients)
        if debugger is not None:
            debugger.step()
        found = [after_stop, transform(x)]
        tensors = [loss, *gradients, *net.get_parameters()]
        seen.append(
            bytes_of(tensors)
            + [bytes_of(each if isinstance(each, tuple) else [each]) for each in found]
        )
    return seen
