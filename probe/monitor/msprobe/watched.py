# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The parts of a training that ``set_monitor`` was given."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.capture.pynative.cells import is_cell_or_cells, optimizer_kinds
from probe.errors import UsageError

#: attributes by which an object holds an optimizer, or several
_HOLDERS = ("chained_optimizers", "optimizer")


class Watched(NamedTuple):
    """The parts of a training.

    Attributes:
        models: the models.
        optimizers: the optimizers; a step ends with the last one.
        accumulated: the number of backwards of a step.
        tensor_group: the tensor-parallel group, or None.
        data_group: the data-parallel group, or None.
    """

    models: list[Any]
    optimizers: list[Any]
    accumulated: int
    tensor_group: Any
    data_group: Any

    def is_duplicate(self, parameter: Any) -> bool:
        """Return whether another rank writes the gradient that enters the optimizer for this parameter."""
        is_split = getattr(parameter, "tensor_model_parallel", False)
        return _is_later(self.data_group) or (not is_split and _is_later(self.tensor_group))


def _is_later(group: Any) -> bool:
    if not group:
        return False
    from mindspore.communication import get_rank

    return bool(get_rank(group) != 0)


def watched(model: Any, optimizer: Any, accumulated: Any, tensor_group: Any, data_group: Any) -> Watched:
    """Return the parts of a training.

    Raises:
        UsageError: when one is wrong.
    """
    if not is_cell_or_cells(model):
        raise UsageError(f"set_monitor(): model is {type(model).__name__}. Allowed: a Cell, a list of Cells")
    if type(accumulated) is not int or accumulated < 1:
        raise UsageError(f"set_monitor(): grad_acc_steps is {accumulated!r}. Allowed: a whole number from 1")
    optimizers = _optimizers(optimizer)
    if not optimizers:
        name = type(optimizer).__name__
        raise UsageError(f"set_monitor(): optimizer is {name}. Allowed: an optimizer of MindSpore, or its holder")
    models = list(model) if isinstance(model, (list, tuple)) else [model]
    return Watched(models, optimizers, accumulated, tensor_group, data_group)


def _optimizers(given: Any) -> list[Any]:
    if isinstance(given, optimizer_kinds()):
        return [given]
    if isinstance(given, (list, tuple)):
        return [found for item in given for found in _optimizers(item)]
    held = next((getattr(given, name) for name in _HOLDERS if getattr(given, name, None) is not None), None)
    return [] if held is None else _optimizers(held)
