# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A third layer above PyNative: blocks that hold tensors and other blocks, and a rule that moves the tensors."""

from __future__ import annotations

import mindspore as ms
from mindspore import Parameter, ops

from probe.layers.layer import Layer


class Block:
    """A module: its attributes are parameters, other blocks, and plain values."""

    def __init__(self, **held):
        vars(self).update(held)

    def __call__(self, *inputs):
        return self.forward(*inputs)


class Affine(Block):
    """x times a matrix."""

    def forward(self, x):
        return ops.matmul(x, self.weight)


class Both(Block):
    """Two blocks with an activation between them."""

    def forward(self, x):
        return self.second(ops.tanh(self.first(x)))


class Rule:
    """Gradient descent."""

    def __init__(self, parameters):
        self.param_groups = [{"params": parameters, "lr": 0.5}]
        self.state = {}

    def advance(self, gradients):
        for parameter, gradient in zip(self.param_groups[0]["params"], gradients):
            parameter.set_data(ms.Tensor(parameter.asnumpy() - 0.5 * gradient.asnumpy()))


class BlockLayer(Layer):
    """The description of blocks."""

    framework = "blocks"
    prefix = "Module"
    kind = Block
    allowed = "a Block"
    packages = ("tests",)
    optimizers = (Rule,)
    update = "advance"

    def modules(self, module):
        yield "", module
        for name, held in vars(module).items():
            for path, below in self.modules(held) if isinstance(held, Block) else ():
                yield f"{name}.{path}".rstrip("."), below

    def parameters(self, module):
        return {key: held for key, held in vars(module).items() if isinstance(held, Parameter)}

    def parameter_name(self, parameter, path, key):
        return f"{path}.{key}"

    def has_pre_hooks(self, module):
        return False
