# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One side of a comparison of two layouts: the ranks that make one whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from probe.findings.sentence import Sentence
from probe.reading.compare.layouts.collectives import sum_of
from probe.reading.compare.layouts.entries import read_entries, tensors_given, values
from probe.reading.compare.layouts.placed import Placed
from probe.reading.compare.layouts.placements import has_placements
from probe.reading.compare.layouts.shards import ALONE, Shards, axis_between
from probe.reading.compare.layouts.stages import Stages
from probe.reading.dumps.call_kinds import is_collective, is_random
from probe.reading.dumps.document import Document
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT, parse
from probe.reading.dumps.flow import Flow, content_key, is_constant
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import is_tensor, part_of

#: parameters that the forward changes, on each rank by its own data
MOVING = re.compile(r"(^|\.)moving_(mean|variance)$")


class Group(NamedTuple):
    """The ranks that make one whole."""

    #: for each pipeline stage the folders of its tensor-parallel ranks
    stages: tuple[tuple[DumpFolder, ...], ...]

    @property
    def tp(self) -> int:
        """The number of ranks that share the tensors of a layer."""
        return len(self.stages[0])

    @property
    def ranks(self) -> list[Any]:
        """All ranks."""
        return [folder.rank for stage in self.stages for folder in stage]


class Place(NamedTuple):
    """A tensor of an entry."""

    name: str
    place: str


class Side:
    """One side; the stages of the first ranks are put together."""

    def __init__(self, group: Group) -> None:
        self.group = group
        first = [stage[0] for stage in group.stages]
        documents = [folder.source.read(folder.path) for folder in first]
        self.stages = Stages(documents)
        self.document: Document = self.stages.document()
        self.construct = self.stages.construct()
        self.containers = frozenset(parent for parent in self.construct.values() if parent)
        self.partners: dict[str, str] = {}  # entry name -> the entry of the other side
        #: entry name -> place -> the records of all ranks
        self.shards: dict[str, dict[str, Shards]] = {}
        self.sums: dict[Any, Place] = {}  # content of a term of a sum -> the tensor that has it
        self.outside: set[Place] = set()  # inputs that no call has made
        self.given_parameters: set[Place] = set()  # inputs that are parameters
        self._plain: dict[str, dict[str, Any]] = {}
        self._uneven: set[str] = set()

    @property
    def data(self) -> dict[str, Any]:
        """The entries of the first ranks."""
        return self.stages.data

    def plan(self, name: str, other: Mapping[str, Any]) -> None:
        """Decide along which axis the parts of each tensor of an entry are put together, by its partner's values."""
        planned: dict[str, Shards] = {}
        rest: dict[str, Any] = {}
        for place, leaf in values(self.data[name]):
            theirs: Any = other.get(place)
            if not is_tensor(leaf):
                rest[place] = leaf
            elif is_tensor(theirs):
                axis = axis_between(leaf.get("shape"), theirs.get("shape"))
                planned[place] = Placed(leaf) if has_placements(leaf) else Shards(leaf, axis)
            elif place not in other and place.count(".") > 1:
                # of a list that has fewer tensors there: one for each rank
                planned[place] = Shards(leaf, ALONE)
        self.shards[name] = planned
        self._plain[name] = rest

    def find_outside(self, flow: Flow) -> None:
        """Find in the first ranks inputs that are parameters or data: integers from outside, and the first input."""
        for position, (name, links) in enumerate(zip(flow.names, flow.links)):
            if name not in self.partners or flow.parts[position].direction != FORWARD:
                continue
            for link in links:
                if link.producer >= 0:
                    continue
                if link.parameter is not None:
                    if not MOVING.search(link.parameter[1]):
                        self.given_parameters.add(Place(name, link.place))
                elif not self.outside or str(link.record.get("dtype")).startswith(("Int", "UInt")):
                    self.outside.add(Place(name, link.place))

    def plan_sums(self) -> None:
        """Find the collectives that add up, and the tensors that they add up."""
        for name, entry in self.data.items():
            if name in self.containers or not self.is_own_group(name):
                continue
            total = sum_of(parse(name), entry)
            if total is None:
                continue
            axis = axis_between(total.record.get("shape"), total.term.get("shape"))
            planned = self.shards.setdefault(name, {})
            planned.setdefault(total.place, Shards(total.record, axis))
            key = content_key(total.term)
            if key is not None and not is_constant(total.term):
                self.sums.setdefault(key, Place(name, total.place))

    def is_own_group(self, name: str) -> bool:
        """Return whether a collective's group is the tensor-parallel group, or is not known."""
        entry = self.data[name]
        members = part_of(entry, "group_ranks")
        if not isinstance(members, list):
            return True
        stage = self.group.stages[self.stages.stage_of[name]]
        own = [str(folder.rank or 0) for folder in stage]
        return own == list(map(str, members))

    def read_others(self) -> list[Sentence]:
        """Read the other ranks, one after the other, and return the remarks on their dumps."""
        notes: list[Sentence] = []
        for number, stage in enumerate(self.group.stages):
            for rank, folder in enumerate(stage[1:], 1):
                self._add(read_entries(folder, notes), number, rank)
        return notes

    def _add(self, entries: Iterable[tuple[str, Any]], stage: int, rank: int) -> None:
        renamed = self.stages.renamings[stage]
        missing = {name for name in self.shards if self.stages.stage_of[name] == stage}
        for own_name, entry in entries:
            name = renamed(own_name)
            planned = self.shards.get(name)
            if planned is None or name not in missing:
                continue
            missing.discard(name)
            leaves = dict(values(entry))
            for place, shards in planned.items():
                leaf = leaves.pop(place, None)
                shards.add(leaf if is_tensor(leaf) else None, rank)
            rest = {place: leaf for place, leaf in leaves.items() if not is_tensor(leaf)}
            if rest != self._plain.get(name, {}):
                self._uneven.add(name)
        for name in missing:
            self._uneven.add(name)
            for shards in self.shards[name].values():
                shards.add(None, rank)

    def must_agree(self, name: str) -> bool:
        """Return whether all ranks must give the same: each is given the same, and as a whole."""
        parts = parse(name)
        if parts.kind == GRADIENT:
            names = [f"{parts.key}.{BACKWARD}.{number}" for number in range(parts.number + 1)]
            return all(self.must_agree(backward) for backward in names)
        if not self._is_given_the_same(name):
            return False
        if parts.direction != BACKWARD:
            return True
        forward = self.shards.get(parts.forward, {})
        made = [shards for place, shards in forward.items() if place.startswith("output")]
        if not forward or not all(shards.agrees for shards in made):
            return False
        return self._is_given_the_same(parts.forward)

    def _is_given_the_same(self, name: str) -> bool:
        parts = parse(name)
        planned = self.shards.get(name)
        if planned is None or name in self._uneven or name in self.containers:
            return False
        if parts.kind not in (API, CELL) or is_random(parts) or is_collective(parts):
            return False
        tensors = tensors_given(self.data[name])
        if not tensors or not planned.keys() >= tensors.keys():
            return False
        return all(planned[place].agrees for place in tensors)
