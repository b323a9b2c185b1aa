# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The Cells of a dump as a tree, from construct.json and the names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from probe.reading.dumps import entry_name
from probe.reading.dumps.entry_name import CELL, GRADIENT
from probe.reading.dumps.folders import Contents

CallT = TypeVar("CallT")


class Cell(Generic[CallT]):
    """A Cell of the model: the calls in it, and the Cells in it.

    Attributes:
        path: path and class: "blocks.1.attention.Attention"; of the root "".
        children: the Cells in it, by path and class.
        names: the entries of the calls in it, its own among them.
    """

    __slots__ = ("_find", "path", "children", "names")

    def __init__(self, find: Callable[[str], CallT | None], path: str) -> None:
        self._find = find  # returns the call of a name
        self.path = path
        self.children: dict[str, Cell[CallT]] = {}
        self.names: list[str] = []

    @property
    def calls(self) -> list[CallT]:
        """The calls in it, in the order of the file; those in its children are theirs."""
        return [call for call in map(self._find, self.names) if call is not None]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Cell[CallT]]]:
        """Yield (depth, Cell) of this Cell and all below it."""
        waiting = [(depth, self)]
        while waiting:
            depth, cell = waiting.pop()
            yield depth, cell
            waiting += [(depth + 1, child) for child in reversed(cell.children.values())]

    def __repr__(self) -> str:
        return f"<Cell {self.path or '(root)'}: {len(self.names)} entries, {len(self.children)} children>"


def build(dump: Contents, find: Callable[[str], CallT | None]) -> Cell[CallT]:
    """Return the root of the Cells of a dump, whose calls a function finds by name."""
    root: Cell[CallT] = Cell(find, "")
    cells: dict[str, Cell[CallT]] = {"": root}
    construct = dump.construct

    def place(entry: str | None, depth: int = 0) -> Cell[CallT]:
        """Return the Cell of a Cell's entry, made where it is new."""
        if not entry or depth > 200:
            return root
        label = entry_name.cell_label(entry) or ""
        if label not in cells:
            cells[label] = made = Cell(find, label)
            place(construct.get(entry), depth + 1).children[label] = made
        return cells[label]

    for name in dump.data:
        parts = entry_name.parse(name)
        own = parts.kind in (CELL, GRADIENT)
        if parts.kind == GRADIENT:
            name_of_cell: str | None = f"{parts.key}.forward.0"
        else:
            name_of_cell = name if own else construct.get(name)
        place(name_of_cell).names.append(name)
    return root
