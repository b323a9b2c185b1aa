# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One entry of a dump by itself, with its remarks and the numbers of its tensors; and the tree of Cells.

The tree is made from construct.json and the names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName, cell_label, parse
from probe.reading.dumps.folders import Contents
from probe.reading.dumps.values import Record, has_nonfinite, real

CallT = TypeVar("CallT")
#: key of an entry -> the word that stands for it in names of files and in rows; older recorders have the last two
WORDS = {
    "input_args": "input", "input_kwargs": "kwargs", "output": "output", "output_kwargs": "output_kwargs",
    "input": "input", "parameters": "parameters", "grad_output": "input", "grad_input": "output",
}  # fmt: skip
INPUTS = ("input_args", "input_kwargs", "input", "grad_output")
OUTPUTS = ("output", "output_kwargs", "grad_input")


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
        label = cell_label(entry) or ""
        if label not in cells:
            cells[label] = made = Cell(find, label)
            place(construct.get(entry), depth + 1).children[label] = made
        return cells[label]

    for name in dump.data:
        parts = parse(name)
        own = {CELL: name, GRADIENT: f"{parts.key}.forward.0"}.get(parts.kind)
        place(own or construct.get(name)).names.append(name)
    return root


class EntryView:
    """The name and the content of one entry, as the file has it."""

    __slots__ = ("name", "entry", "parts")

    def __init__(self, name: str, entry: Any) -> None:
        self.name = name
        self.entry = entry
        self.parts: EntryName = parse(name)

    @property
    def api(self) -> str:
        """The API's name or the Cell's class: "softmax", "Dense"."""
        return self.parts.api

    @property
    def kind(self) -> str:
        """The first word of the name: "Functional", "Tensor", "Cell"."""
        return self.parts.prefix

    @property
    def number(self) -> int:
        """Which call of this API or Cell it is in this step, from 0."""
        return self.parts.number

    @property
    def direction(self) -> str:
        """The direction: "forward" or "backward"."""
        return self.parts.direction

    @property
    def raised(self) -> str | None:
        """The error that the call raised; None where it returned."""
        return self._text("raised")

    @property
    def pending(self) -> str | None:
        """Says so where the training had not waited for this communication when the step ended."""
        return self._text("pending")

    def _text(self, key: str) -> str | None:
        found = self.entry.get(key) if isinstance(self.entry, dict) else None
        return None if found is None else str(found)


class TensorNumbers:
    """The dtype, shape and statistics of a record."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def dtype(self) -> str:
        """The dtype as MindSpore writes it: "Float32"."""
        return str(self.record.get("dtype"))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape; None where the record has none."""
        found = self.record.get("shape")
        return tuple(found) if isinstance(found, list) else None

    @property
    def stats(self) -> dict[str, Any]:
        """All statistics of the record, as they are written."""
        return {
            key: value
            for key, value in self.record.items()
            if key not in ("type", "dtype", "shape", "data_name")
        }

    @property
    def max(self) -> float | None:
        """The greatest element."""
        return real(self.record.get("Max"))

    @property
    def min(self) -> float | None:
        """The least element."""
        return real(self.record.get("Min"))

    @property
    def mean(self) -> float | None:
        """The mean."""
        return real(self.record.get("Mean"))

    @property
    def norm(self) -> float | None:
        """The L2 norm."""
        return real(self.record.get("Norm"))

    @property
    def nan_count(self) -> int:
        """How many elements are NaN, where the record says so; else 0."""
        found = real(self.record.get("nan_count"))
        return (
            int(found) if found is not None and math.isfinite(found) else 0
        )  # a table of kernels may say inf

    @property
    def md5(self) -> str | None:
        """The CRC-32 of the array, which the field calls md5; None where it was not asked for."""
        found = self.record.get("md5")
        return found if isinstance(found, str) else None

    @property
    def is_nonfinite(self) -> bool:
        """Whether the tensor holds NaN or Inf."""
        return has_nonfinite(self.record)
