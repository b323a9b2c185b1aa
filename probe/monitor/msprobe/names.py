# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The names of parameters and Cells in the csv files, which are those of msprobe's monitor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from probe.naming import CELL, clean
from probe.series.msprobe_csv import Name

#: a name begins at the last of these parts that has a part before it; the first that fits counts
_BEGINNINGS = tuple(
    re.compile(rf".*\.(?={part})", re.DOTALL) for part in (r"layers?\.", r"embeddings?\.", "final", "output", "norm")
)


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


def chosen_parameters(models: Sequence[Any], targets: Sequence[str]) -> dict[str, tuple[Name, Any]]:
    """Return the parameters that are trained and begin with a target, with their names, by the texts of these."""
    found: dict[str, tuple[Name, Any]] = {}
    for stage, model in enumerate(models):
        for path, parameter in model.parameters_and_names():
            short = Name(stage, shortened(path))
            whole = Name(stage, path)
            beginnings = (path, str(short), str(whole))
            if not parameter.requires_grad or (
                targets and not any(item.startswith(target) for item in beginnings for target in targets)
            ):
                continue
            name = whole if str(short) in found else short
            found[str(name)] = name, parameter
    return found


def chosen_cells(models: Sequence[Any], targets: Sequence[str], every: bool) -> dict[str, tuple[Name, Any]]:
    """Return the Cells that are targets, or every Cell, with their names, by the keys of their calls."""
    found: dict[str, tuple[Name, Any]] = {}
    taken: set[Name] = set()
    for path, cell in Models(models).cells_and_names():
        if not path:
            continue
        stage, _, below = path.partition(".")
        names = [Name(int(stage), shortened(below)), Name(int(stage), below)]
        accepted = [name for name in names if str(name) in targets or name.name in targets]
        if every or accepted:
            name = next((name for name in accepted or names if name not in taken), names[1])
            taken.add(name)
            found[clean(f"{CELL}.{path}.{type(cell).__name__}")] = name, cell
    return found


class Models:
    """Several models as if they were below one Cell, so that they themselves are watched too.

    Args:
        models: the models.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self._models = models

    def cells_and_names(self) -> Iterator[tuple[str, Any]]:
        """Yield the path and the Cell of each model and all below it; the first is this object."""
        yield "", self
        for place, model in enumerate(self._models):
            for path, cell in model.cells_and_names():
                yield f"{place}.{path}" if path else str(place), cell
