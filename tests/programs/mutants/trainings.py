# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes of a training that are in no line of the net: data, parameters, Cells, and values between the steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Change(NamedTuple):
    """One change of a training.

    Attributes:
        kind: the class of the change.
        seed: chooses the parameter or the Cell.
        harmless: whether the change is none for the numbers.
    """

    kind: str
    seed: int
    harmless: bool = False


KINDS = (
    "rolled labels", "batch reversed", "batch scaled", "one row", "weight transposed", "weight scaled", "other init",
    "rows exchanged", "one weight", "frozen", "in place between steps", "learning rate", "BatchNorm momentum",
    "BatchNorm epsilon",
    "LayerNorm epsilon", "state between steps", "optimizer momentum", "weight decay",
)  # fmt: skip
HARMLESS = ("the same again",)


def of_data(change, data):
    """Return the data of a training."""
    import mindspore as ms

    kind = change.kind
    made = []
    for given, labels in data:
        x, y = given, labels
        if kind == "rolled labels":
            y = np.roll(y, 1)
        elif kind == "batch reversed":
            x = x[::-1].copy()
        elif kind == "batch scaled" and x.dtype == np.float32:
            x = x * np.float32(1.02)
        elif kind == "one row":
            x = x.copy()
            x[0] = x[1]
        made.append((ms.Tensor(x), ms.Tensor(y)))
    return made


def _choose(items, seed):
    items = list(items)
    return items[seed % len(items)] if items else None


def of_net(change, net):  # noqa: PLR0911, PLR0912 - a list of changes
    """Change a net; return the truth: the path of a Cell or parameter; None where the net has no such place."""
    import mindspore as ms
    from mindspore import nn, ops

    kind = change.kind
    weights = [p for p in net.trainable_params() if p.ndim >= 2 and min(p.shape[:2]) > 1]
    if kind == "weight transposed":
        parameter = _choose(
            [p for p in weights if p.ndim == 2 and p.shape[0] == p.shape[1]], change.seed
        )
        if parameter is None:
            return None
        parameter.set_data(ms.Tensor(np.ascontiguousarray(parameter.asnumpy().T)))
        return parameter.name
    if kind in ("weight scaled", "other init", "rows exchanged", "one weight"):
        parameter = _choose(
            net.trainable_params() if kind == "one weight" else weights, change.seed
        )
        value = parameter.asnumpy().copy()
        if kind == "weight scaled":
            value *= 1.05
        elif kind == "other init":
            value = (np.random.RandomState(5).randn(*value.shape) * (value.std() + 1e-3)).astype(
                value.dtype
            )
        elif kind == "rows exchanged":
            value = value[::-1].copy()
        else:
            flat = value.reshape(-1)
            flat[change.seed % flat.size] += 0.5
        parameter.set_data(ms.Tensor(value))
        return parameter.name
    if kind == "frozen":
        parameter = _choose(net.trainable_params(), change.seed)
        parameter.requires_grad = False
        return parameter.name
    normal = (nn.BatchNorm2d, nn.BatchNorm1d)
    if kind.startswith("BatchNorm"):
        found = _choose(
            [(n, c) for n, c in net.cells_and_names() if isinstance(c, normal)], change.seed
        )
        if found is None:
            return None
        path, cell = found
        momentum, epsilon = cell.bn_train.momentum, cell.bn_train.epsilon
        if kind == "BatchNorm momentum":
            momentum = 0.5
        else:
            epsilon = 0.05
        cell.bn_train = ops.BatchNorm(is_training=True, epsilon=epsilon, momentum=momentum)
        return path
    if kind == "LayerNorm epsilon":
        found = _choose(
            [(n, c) for n, c in net.cells_and_names() if type(c) is nn.LayerNorm], change.seed
        )
        if found is None:
            return None
        path, cell = found
        cell.layer_norm = ops.LayerNorm(
            begin_norm_axis=cell.begin_norm_axis,
            begin_params_axis=cell.begin_params_axis,
            epsilon=1e-2,
        )
        return path
    if kind == "state between steps":
        return "moving" if any(isinstance(c, normal) for _, c in net.cells_and_names()) else None
    return ""


def of_optimizer(change, make):
    """Return the function that makes the optimizer."""
    from mindspore import nn

    def changed(name, parameters):
        adam = name == "adam"
        if name == "own":
            own = make(name, parameters)
            own.rate *= 1.5 if change.kind == "learning rate" else 1.0
            own.decay *= 5.0 if change.kind == "weight decay" else 1.0
            return own
        if change.kind == "learning rate":
            return (
                nn.Adam(parameters, 1.5e-3, weight_decay=0.01)
                if adam
                else nn.Momentum(parameters, 0.06, 0.9, 1e-4)
            )
        if change.kind == "optimizer momentum":
            return (
                nn.Adam(parameters, 1e-3, 0.8, weight_decay=0.01)
                if adam
                else nn.SGD(parameters, 0.05, weight_decay=1e-4)
            )
        if change.kind == "weight decay":
            return nn.Adam(parameters, 1e-3) if adam else nn.Momentum(parameters, 0.05, 0.9, 0.01)
        return make(name, parameters)

    return changed


def between(change):
    """Return the function that runs between the steps, and the list that gets its truth."""
    import mindspore as ms
    from mindspore import nn

    touched = []

    def run(step, net, optimizer):
        if step != 0:
            return
        if change.kind == "in place between steps":
            parameter = _choose(net.trainable_params(), change.seed)
            value = parameter.asnumpy() * np.float32(1.03) + np.float32(0.001)
            parameter.set_data(ms.Tensor(value))
            touched.append(parameter.name)
        elif change.kind == "state between steps":
            cells = [
                c
                for _, c in net.cells_and_names()
                if isinstance(c, (nn.BatchNorm2d, nn.BatchNorm1d))
            ]
            cell = _choose(cells, change.seed)
            cell.moving_mean.set_data(ms.Tensor(cell.moving_mean.asnumpy() + np.float32(0.5)))
            touched.append(cell.moving_mean.name)

    return run, touched
