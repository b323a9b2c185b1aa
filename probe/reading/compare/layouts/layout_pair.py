# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The ranks of two layouts that make one whole, as a pair of dumps that are read like any others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence
from probe.reading.compare.layouts.apart import Share
from probe.reading.compare.layouts.combine import Combining
from probe.reading.compare.layouts.entries import read_entries, values
from probe.reading.compare.layouts.renaming import Renaming
from probe.reading.compare.layouts.side import Group, Place
from probe.reading.compare.layouts.stages import Stages
from probe.reading.dumps.document import Document
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import grouped, is_tensor


class _Names(NamedTuple):
    """The names of the entries of the stages of one side."""

    renamings: list[Renaming]  # the names of each stage in the whole
    stage_of: dict[str, int] | None  # entry name -> its stage; None where there is one stage

    def stage(self, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        return 0 if self.stage_of is None else self.stage_of.get(name)


_ONE_STAGE = _Names([str], None)


class LayoutPair:
    """The ranks of A and B that make one whole, read together; ``counts`` are numbers of ranks that share something."""

    def __init__(
        self,
        groups: tuple[Group, Group],
        mapping: Mapping[str, str] | None,
        notes: list[Sentence],
        counts: Sequence[int] = (),
    ) -> None:
        self.groups = groups
        self.counts = counts
        self._mapping = mapping
        self._notes = notes
        self._made: dict[int, Document] = {}
        self._names = [_ONE_STAGE, _ONE_STAGE]

    def read(self, side: int) -> Document:
        """Return the document of one side; the other one waits. Raise UsageError when a dump cannot be read."""
        if side not in self._made:
            combining = Combining(self.groups, self._mapping)
            first, second = combining.documents()
            first.notes[:0] = self._notes
            self._made = {0: first, 1: second}
            self._names = [_names(half.stages) for half in combining.sides]
        return self._made.pop(side)

    def stage(self, side: int, name: str) -> int | None:
        """Return the pipeline stage of an entry; None where it is in none."""
        return self._names[side].stage(name)

    def forget(self) -> None:
        """Drop the names of the entries; they are there again after the next ``read``."""
        self._names = [_ONE_STAGE, _ONE_STAGE]

    def records(self, side: int, wanted: Iterable[Place]) -> dict[Place, list[Share]]:
        """Return records of tensors on all ranks that share them, with folders; raise UsageError for a broken one."""
        shares: dict[Place, list[Share]] = {}
        by_stage = grouped((self.stage(side, place.name), place) for place in wanted)
        for number, stage in enumerate(self.groups[side].stages):
            places = grouped((place.name, place) for place in by_stage.get(number, ()))
            if not places:
                continue
            for folder in stage:
                for name, entry in self._entries_in(folder, side, number, places):
                    leaves = dict(values(entry))
                    for place in places[name]:
                        record = leaves.get(place.place)
                        if is_tensor(record):
                            shares.setdefault(place, []).append(Share(folder, record or {}))
        return shares

    def entries(self, side: int, name: str) -> list[Any]:
        """Return an entry on all ranks that share its tensors; raise UsageError when a dump cannot be read."""
        number = self.stage(side, name)
        if number is None:
            return []
        entries: list[Any] = []
        for folder in self.groups[side].stages[number]:
            named = self._entries_in(folder, side, number, (name,))
            entries += [entry for _, entry in named]
        return entries

    def _entries_in(
        self, folder: DumpFolder, side: int, stage: int, wanted: Iterable[str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield entries of a rank, named as in the whole."""
        renamed = self._names[side].renamings[stage]
        for own_name, entry in read_entries(folder, wanted=lambda own: renamed(own) in wanted):
            name = renamed(own_name)
            if name in wanted:
                yield name, entry


def _names(stages: Stages) -> _Names:
    if len(stages.documents) == 1:
        return _ONE_STAGE
    return _Names(stages.renamings, stages.stage_of)


class LayoutSource:
    """One side of a ``LayoutPair``: 0 for A, 1 for B."""

    def __init__(self, pair: LayoutPair, side: int) -> None:
        self.pair = pair
        self.side = side

    def read(self, folder: str) -> Document:
        """Read all ranks and put them together."""
        return self.pair.read(self.side)
