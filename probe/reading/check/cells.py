# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The Cells of two runs: which were added, removed, replaced or moved, and whose numbers and texts differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probe.findings.sentence import Sentence, say
from probe.reading.check.difference import (
    Difference,
    Importance,
    are_equal,
    both,
    listed,
    named,
    only,
    pair,
)
from probe.reading.check.snapshot import RunSnapshot

#: how many changed values of Cells have a line of their own
_LINES = 6


def check_cells(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which Cells were added, removed or replaced, or stand in another order."""
    left = a.cells
    right = b.cells
    replaced = [
        named(_cell_name(path), both(kind, right[path]))
        for path, kind in left.items()
        if path in right and right[path] != kind
    ]
    if replaced:
        yield _difference(say("check.replaced", cells=listed(replaced)))
    yield from _cells_of_one_side("A", left, right)
    yield from _cells_of_one_side("B", right, left)
    if {*left} == {*right} and list(left) != list(right):
        first = next(pair(x, y) for x, y in zip(left, right) if x != y)
        yield _difference(say("check.cells_moved", first=first))


def _cells_of_one_side(
    side: str, mine: Mapping[str, str], theirs: Mapping[str, str]
) -> Iterator[Difference]:
    """Yield the Cells that only one side has. A Cell stands for those inside of it."""
    alone = [path for path in mine if path not in theirs]
    outermost = [path for path in alone if path.rpartition(".")[0] not in alone]
    if alone:
        cells = [say("check.cell", path=path, kind=mine[path]) for path in outermost]
        yield _difference(only(cells, side))


def check_cell_values(a: RunSnapshot, b: RunSnapshot) -> Iterator[Difference]:
    """Yield which numbers and texts of Cells differ, such as the rate of a dropout: one line for equal changes."""
    left = a.cell_values
    right = b.cell_values
    if not left or not right:
        return
    # (class of the Cells, name, values in A and B) -> the Cells with this change
    changes: dict[tuple[str, str, Sentence], list[Any]] = {}
    kinds = b.cells
    for path, kind in a.cells.items():
        if kinds.get(path) != kind:
            continue
        x = left.get(path, {})
        y = right.get(path, {})
        for name in {**x, **y}:
            if not are_equal(x.get(name), y.get(name)):
                change = (kind, name, pair(x.get(name), y.get(name)))
                changes.setdefault(change, []).append(_cell_name(path))
    for (kind, name, values), paths in list(changes.items())[:_LINES]:
        cells = listed(paths)
        yield _difference(say("check.cell_value", name=name, cells=cells, kind=kind, values=values))


def _cell_name(path: str) -> Any:
    """Return the path of a Cell; the model itself has none."""
    return path or say("check.model")


def _difference(said: Sentence) -> Difference:
    return Difference(Importance.STRUCTURE, say("check.cells"), said)
