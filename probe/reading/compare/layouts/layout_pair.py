# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two groups of ranks as a pair of dumps that are read like any others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from probe.findings.sentence import Sentence
from probe.reading.compare.layouts.combine import Combining
from probe.reading.compare.layouts.side import Group, Place, read_entries, values
from probe.reading.dumps.document import Document
from probe.reading.dumps.values import Record, is_tensor


class LayoutPair:
    """The ranks of A and of B that make one whole. Both sides are read together, since each tells how the other fits.

    ``counts`` are the numbers of ranks that share something.
    """

    def __init__(
        self,
        groups: tuple[Group, Group],
        mapping: Mapping[str, str] | None,
        notes: list[Sentence],
        counts: Sequence[int] = (),
    ) -> None:
        self.groups, self._mapping, self._notes, self.counts = groups, mapping, notes, counts
        self._made: list[Document | None] = [None, None]
        self._stages: list[Any] = [None, None]

    def read(self, side: int) -> Document:
        """Return the document of one side; the other one waits. Raise UsageError when a dump cannot be read."""
        document = self._made[side]
        if document is None:
            combining = Combining(self.groups, self._mapping)
            self._made = list(combining.documents())
            self._made[0].notes[:0] = self._notes  # type: ignore[union-attr]
            self._stages = [
                (half.stages.renamings, half.stages.stage_of) if len(half.group.stages) > 1 else None
                for half in combining.sides
            ]
            document = self._made[side]
            assert document is not None
        self._made[side] = None
        return document

    def stage(self, side: int, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        known = self._stages[side]
        found: int | None = known[1].get(name) if known else 0
        return found

    def forget(self) -> None:
        """Drop the names of the entries; they are there again after the next ``read``."""
        self._stages = [None, None]

    def records(self, side: int, wanted: Iterable[Place]) -> dict[Place, list[tuple[Any, Record]]]:
        """Return the records of some tensors on all ranks that share them, with each rank's folder.

        Raise UsageError when a dump cannot be read.
        """
        found: dict[Place, list[tuple[Any, Record]]] = {}
        for number, stage in enumerate(self.groups[side].stages):
            renamed = self._stages[side][0][number] if self._stages[side] else str
            own: dict[str, list[str]] = {}
            for name, place in wanted:
                if self.stage(side, name) == number:
                    own.setdefault(name, []).append(place)
            for folder in stage if own else ():
                for own_name, entry in read_entries(folder, wanted=lambda name, own=own, new=renamed: new(name) in own):  # type: ignore[misc]
                    name = renamed(own_name)
                    leaves = dict(values(entry)) if name in own else {}
                    for place in own.get(name, ()):
                        record = leaves.get(place)
                        if is_tensor(record):
                            found.setdefault(Place(name, place), []).append((folder, record or {}))
        return found

    def entries(self, side: int, name: str) -> list[Any]:
        """Return an entry on all ranks that share its tensors; raise UsageError when a dump cannot be read."""
        number = self.stage(side, name)
        renamed = self._stages[side][0][number] if self._stages[side] else str
        stages = self.groups[side].stages
        folders = stages[number] if number is not None else ()
        return [
            entry for folder in folders for own, entry in read_entries(folder, wanted=lambda own: renamed(own) == name)
        ]


class LayoutSource:
    """One side of a ``LayoutPair``: 0 for A, 1 for B."""

    def __init__(self, pair: LayoutPair, side: int) -> None:
        self.pair, self.side = pair, side

    def read(self, folder: str) -> Document:
        """Read all ranks and put them together."""
        return self.pair.read(self.side)
