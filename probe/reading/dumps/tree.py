# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The Cells of a dump as a tree, from construct.json and the names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from probe.reading.dumps import entry_name
from probe.reading.dumps.entry_name import CELL, GRADIENT
from probe.reading.dumps.folders import Contents

CallT = TypeVar("CallT")
CallT_co = TypeVar("CallT_co", covariant=True)


class CallsByName(Contents, Protocol[CallT_co]):
    """A dump whose entries can be looked up by name."""

    def __getitem__(self, name: str) -> CallT_co:
        """Return the call of this name."""

    def __contains__(self, name: object) -> bool:
        """Return whether there is a call of this name."""


class Cell(Generic[CallT]):
    """A Cell of the model: the calls in it, and the Cells in it.

    Attributes:
        path: path and class: "blocks.1.attention.Attention"; of the root "".
        children: the Cells in it, by path and class.
        names: the entries of the calls in it, its own among them.
    """

    __slots__ = ("dump", "path", "children", "names")

    def __init__(self, dump: CallsByName[CallT], path: str) -> None:
        self.dump = dump
        self.path = path
        self.children: dict[str, Cell[CallT]] = {}
        self.names: list[str] = []

    @property
    def calls(self) -> list[CallT]:
        """The calls in it, in the order of the file; those in its children are theirs."""
        return [self.dump[name] for name in self.names if name in self.dump]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Cell[CallT]]]:
        """Yield (depth, Cell) of this Cell and all below it."""
        waiting = [(depth, self)]
        while waiting:
            depth, cell = waiting.pop()
            yield depth, cell
            waiting += [(depth + 1, child) for child in reversed(cell.children.values())]

    def __repr__(self) -> str:
        return f"<Cell {self.path or '(root)'}: {len(self.names)} entries, {len(self.children)} children>"


def build(dump: CallsByName[CallT]) -> Cell[CallT]:
    """Return the root of the Cells of a dump."""
    root: Cell[CallT] = Cell(dump, "")
    cells: dict[str, Cell[CallT]] = {"": root}
    construct = dump.construct

    def place(entry: str | None, depth: int = 0) -> Cell[CallT]:
        """Return the Cell of a Cell's entry, made where it is new."""
        if not entry or depth > 200:
            return root
        label = entry_name.cell_label(entry) or ""
        if label not in cells:
            cells[label] = made = Cell(dump, label)
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
