# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The parts of a training that ``set_monitor`` was given, and their names, which are those of msprobe's monitor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from probe.capture.pynative.cells import is_cell_or_cells
from probe.capture.training.events import optimizer_kinds
from probe.errors import UsageError
from probe.naming import CELL, clean

#: a name begins at the last of these parts that has a part before it; the first that fits counts
_BEGINNINGS = tuple(
    re.compile(rf".*\.(?={part})", re.DOTALL) for part in (r"layers?\.", r"embeddings?\.", "final", "output", "norm")
)
#: attributes by which an object holds an optimizer, or several
_HOLDERS = ("chained_optimizers", "optimizer")


class Watched(NamedTuple):
    """The parts of a training."""

    models: list[Any]
    optimizers: list[Any]  # a step ends with the last one
    accumulated: int  # the number of backwards of a step
    tensor_group: Any  # the tensor-parallel group, or None
    data_group: Any  # the data-parallel group, or None

    def is_duplicate(self, parameter: Any) -> bool:
        """Return whether another rank writes the gradient that enters the optimizer for this parameter."""
        from mindspore.communication import get_rank

        is_split = getattr(parameter, "tensor_model_parallel", False)
        groups = (self.data_group, None if is_split else self.tensor_group)
        return any(group and get_rank(group) != 0 for group in groups)


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


def shortened(name: str) -> str:
    """Return a name without the parts that wrap a model.

    >>> shortened("net.backbone.layers.0.weight"), shortened("fc.weight")
    ('layers.0.weight', 'fc.weight')
    """
    for beginning in _BEGINNINGS:
        found = beginning.match(name)
        if found:
            return name[found.end() :]
    return name


def chosen_parameters(models: Sequence[Any], targets: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that are trained and begin with a target, by their names."""
    found: dict[str, Any] = {}
    for stage, model in enumerate(models):
        for path, parameter in model.parameters_and_names():
            short, whole = f"{stage}:{shortened(path)}", f"{stage}:{path}"
            is_target = not targets or any(name.startswith(tuple(targets)) for name in (path, short, whole))
            if parameter.requires_grad and is_target:
                found[whole if short in found else short] = parameter
    return found


def chosen_cells(models: Sequence[Any], targets: Sequence[str], every: bool) -> dict[str, tuple[str, Any]]:
    """Return the Cells that are targets, or every Cell, with their names, by the keys of their calls."""
    found: dict[str, tuple[str, Any]] = {}
    taken: set[str] = set()
    for path, cell in Models(models).cells_and_names():
        if path:
            stage, _, below = path.partition(".")
            names = [f"{stage}:{shortened(below)}", f"{stage}:{below}"]
            accepted = [name for name in names if name in targets or name.partition(":")[2] in targets]
            if every or accepted:
                name = next((name for name in accepted or names if name not in taken), names[1])
                taken.add(name)
                found[clean(f"{CELL}.{path}.{type(cell).__name__}")] = name, cell
    return found


class Models:
    """Several models as if they were below one Cell, so that they themselves are watched too."""

    def __init__(self, models: Sequence[Any]) -> None:
        self._models = models

    def cells_and_names(self) -> Iterator[tuple[str, Any]]:
        """Yield the path and the Cell of each model and all below it; the first is this object."""
        yield "", self
        for place, model in enumerate(self._models):
            for path, cell in model.cells_and_names():
                yield f"{place}.{path}" if path else str(place), cell
