# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Puts the ranks of two layouts together: two documents of the whole model, which are compared like any others.

A tensor whose shape is smaller than the other side's in one axis is the ranks' parts put together. One of equal shape
is the same on all ranks, or a term of a sum: then a later collective has the sum. All else is not combined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from probe.reading import entry_name
from probe.reading.compare.align import Alignment
from probe.reading.compare.layouts.joined import Stored
from probe.reading.compare.layouts.places import GIVEN, values, with_values
from probe.reading.compare.layouts.shards import ODD, WHOLE, Shards, agree, not_combined
from probe.reading.compare.layouts.side import Group, Place, Side
from probe.reading.compare.origin import is_collective
from probe.reading.document import Document
from probe.reading.dump import Dump
from probe.reading.entry_name import CELL, FORWARD
from probe.reading.flow import Flow, content_key
from probe.reading.source import DumpFolder
from probe.reading.values import Record, element_count, is_tensor, plain, real

#: Cells that communicate and compute nothing
_REGION = re.compile(r"(Copy|Reduce|Gather|Scatter)\w*(To|From)\w*Region|^All(Reduce|Gather)|^ReduceScatter")
#: how exactly two ways to add up agree
_ROUNDING = 1e-6


class _Given:
    """A source that has the document already."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def claims(self, files: set[str]) -> bool:
        return False

    def read(self, folder: str) -> Document:
        return self._document


class Combining:
    """Puts the ranks of both sides together.

    Args:
        groups: the ranks of A and of B.
        mapping: names in A -> names in B.

    Attributes:
        left_out: the calls that only the layout needs, for each side.
        open: the tensors that are not combined.
    """

    def __init__(self, groups: tuple[Group, Group], mapping: Mapping[str, str] | None) -> None:
        self.sides = Side(groups[0]), Side(groups[1])
        self.left_out: tuple[set[str], set[str]] = (set(), set())
        self.open: list[str] = []
        self._notes: list[str] = []
        self._tensors = groups[0].tp != groups[1].tp
        self._pair(mapping)
        if self._tensors:
            for side in self.sides:
                if side.group.tp > 1:
                    side.plan_sums()
                    self._notes += side.read_others()

    def documents(self) -> tuple[Document, Document]:
        """Return the documents of A and B as a whole."""
        made = [self._document(number) for number in (0, 1)]
        count = sum(len(names) for names in self.left_out)
        if count:
            self._notes.append(f"{count} calls of collectives that only one of the layouts needs are left out")
        if self.open:
            self._notes.append(
                f"{len(self.open)} tensors are not combined: the ranks hold terms of a sum, or values of their own; the "
                f"first is {self.open[0]}"
            )
        made[0].notes.extend(self._notes)
        return made[0], made[1]

    def _pair(self, mapping: Mapping[str, str] | None) -> None:
        """Pair the entries by the records of the first ranks, and decide how each tensor is put together."""
        sides = self.sides
        dumps = [_dump(side) for side in sides]
        alignment = Alignment(dumps[0], dumps[1], mapping)
        flows = alignment.flows
        for a, b in alignment.b_of.items():
            names = flows[0].names[a], flows[1].names[b]
            found = [dict(values(side.data[name])) for side, name in zip(sides, names)]
            for number, side in enumerate(sides):
                side.partners[names[number]] = names[1 - number]
                if self._tensors and side.group.tp > 1:
                    side.plan(names[number], found[1 - number])
        for number, side in enumerate(sides):
            self._leave_out(number)
            if self._tensors and side.group.tp > 1:
                side.outside = _outside(flows[number], side)

    def _leave_out(self, number: int) -> None:
        """Find the collectives that only one layout needs, and the Cells that hold nothing else."""
        side, out = self.sides[number], self.left_out[number]
        inner: dict[str, list[str]] = {}
        for name, parent in side.construct.items():
            if parent:
                inner.setdefault(parent, []).append(name)
        for name in side.data:
            parts = entry_name.parse(name)
            alone = name not in side.partners
            if name in side.containers:
                if alone and all(child in out or child not in side.data for child in inner[name]):
                    out.add(name)
            elif is_collective(parts):
                if alone or (self._tensors and side.is_own_group(name)):
                    out.add(name)
            elif alone and parts.kind == CELL and _REGION.search(parts.api):
                out.add(name)

    def _document(self, number: int) -> Document:
        side, out = self.sides[number], self.left_out[number]
        settling = _Settling(self.sides, number, self.open) if self._tensors and side.group.tp > 1 else None
        stored = [Stored((stage[0].path,)) for stage in side.group.stages]
        several = len(side.group.ranks) > 1
        data: dict[str, Any] = {}
        for name, entry in side.data.items():
            if name in out:
                continue
            new = settling.entry(name) if settling else {}
            if self._tensors and name in side.partners:
                new.update(self._sizes(number, name))
            made = with_values(entry, new) if new else entry
            if several:
                for _, leaf in values(made):
                    if is_tensor(leaf) and leaf.get("data_name"):
                        leaf.setdefault("stored", stored[side.stages.stage_of[name]])
            data[name] = made
        construct = {name: parent for name, parent in side.construct.items() if name not in out}
        document = side.document
        return Document(document.header, data, document.stacks, lambda: construct, document.notes)

    def _sizes(self, number: int, name: str) -> dict[str, Any]:
        """Return plain numbers that are a rank's part of a size, as the whole has them."""
        side, other = self.sides[number], self.sides[1 - number]
        if side.group.tp == 1:
            return {}
        theirs = dict(values(other.data[side.partners[name]]))
        found: dict[str, Any] = {}
        for place, leaf in values(side.data[name]):
            if is_tensor(leaf) or place not in theirs or leaf is None:
                continue
            own, their = plain(leaf), plain(theirs[place])
            if type(own) is int and type(their) is int and own != their:
                if own * side.group.tp == their * other.group.tp:
                    found[place] = theirs[place]
        return found


def _dump(side: Side) -> Dump:
    folder: DumpFolder = side.group.stages[0][0]
    return Dump(folder._replace(source=_Given(side.document)))


def _outside(flow: Flow, side: Side) -> set[Place]:
    """Return the inputs that are data: integers that no call has made, and the first input of all."""
    found: set[Place] = set()
    for position, (name, links) in enumerate(zip(flow.names, flow.links)):
        for link in links:
            if link.producer >= 0 or link.parameter is not None or name not in side.partners:
                continue
            if not found or str(link.record.get("dtype")).startswith(("Int", "UInt")):
                if flow.parts[position].direction == FORWARD:
                    found.add(Place(name, link.place))
    return found


class _Settling:
    """Gives each tensor of one side its record in the whole.

    Args:
        sides: A and B.
        number: which of them.
        open: gets the tensors that are not combined.
    """

    def __init__(self, sides: tuple[Side, Side], number: int, open: list[str]) -> None:
        self._side, self._other, self._open = sides[number], sides[1 - number], open
        stages = self._side.group.stages
        self._folders = [[folder.path for folder in stage] for stage in stages]
        self._measured: dict[Any, Record] = {}
        self._made: dict[Any, Record] = {}
        for planned in self._side.shards.values():
            for shards in planned.values():
                if shards.agrees:
                    self._measured.setdefault(_loose(shards.record), shards.record)

    def entry(self, name: str) -> dict[str, Any]:
        """Return the records of an entry that are not those of the first rank, by their places."""
        side = self._side
        planned = side.shards.get(name)
        found: dict[str, Any] = {}
        if name not in side.partners or planned is None:  # a call more: of the same tensors as the calls around it
            for place, leaf in values(side.data[name]):
                made = self._made.get(content_key(leaf)) if is_tensor(leaf) else None
                if made is not None and "not_combined" not in made and place.startswith(GIVEN):
                    found[place] = made
            return found
        for place, shards in planned.items():
            made = self._record(Place(name, place), shards)
            if made is shards.record:
                continue
            found[place] = made
            key = content_key(shards.record)
            if key is not None:
                self._made.setdefault(key, made)
        return found

    def _record(self, at: Place, shards: Shards) -> Record:
        reference = self._reference(at)
        if shards.axis == WHOLE:
            return shards.record if shards.same else self._of_variants(at, shards, reference)
        if shards.axis != ODD and self._fits_length(at, shards):
            return self._measured_like(shards.whole(self._folders[self._side.stages.stage_of[at.name]]))
        if shards.same:
            return shards.record
        return self._unknown(at, shards, "the parts do not make the other side's shape")

    def _fits_length(self, at: Place, shards: Shards) -> bool:
        """Return whether the parts are as long as the other side's."""
        other = self._other
        partner = self._side.partners[at.name]
        if other.group.tp > 1:
            theirs = other.shards.get(partner, {}).get(at.place)
            return theirs is not None and theirs.axis == shards.axis and theirs.length == shards.length
        shape = dict(values(other.data[partner]))[at.place]["shape"]
        return bool(shape[shards.axis] == shards.length)

    def _reference(self, at: Place) -> Record | None:
        """Return the other side's record of a tensor, where it is known as a whole."""
        partner = self._side.partners[at.name]
        if self._other.group.tp > 1:
            theirs = self._other.shards.get(partner, {}).get(at.place)
            return theirs.record if theirs is not None and theirs.agrees else None
        found: Record | None = dict(values(self._other.data[partner])).get(at.place)
        return found

    def _of_variants(self, at: Place, shards: Shards, reference: Record | None) -> Record:
        """Return the record of a tensor that every rank has in full, but not the same."""
        variants = shards.variants or []
        total = self._side.sums.get(content_key(shards.record))
        if total is not None and total.name != at.name:
            return self._sum(total, at, shards, reference)
        parameter = at.place.startswith("parameters.") and "moving_" not in at.place
        must = not at.place.startswith(GIVEN) and self._side.must_agree(at.name)
        if parameter or must or (at in self._side.outside and _some_agree(variants, reference)):
            return self._deviating(at, variants, reference)
        return self._unknown(at, shards, "the ranks differ")

    def _sum(self, total: Place, at: Place, shards: Shards, reference: Record | None) -> Record:
        """Return the record of a sum whose terms the ranks have."""
        added = self._side.shards[total.name][total.place]
        if added.axis >= 0:
            return self._measured_like(added.whole(self._folders[self._side.stages.stage_of[total.name]]))
        if added.agrees:
            return added.record
        if added.variants:
            return self._deviating(total, added.variants, reference)
        return self._unknown(at, shards, "the sum is not known")

    def _deviating(self, at: Place, variants: list[tuple[Record, list[int]]], reference: Record | None) -> Record:
        """Return the record of a rank that is apart from the other side, while another one agrees with it."""
        record, ranks = variants[0]
        if reference is not None and _some_agree(variants, reference):
            record, ranks = next(item for item in variants if not agree(item[0], reference))
        if not record.get("data_name"):
            return record
        return {**record, "stored": Stored((self._folders[self._side.stages.stage_of[at.name]][ranks[0]],))}

    def _unknown(self, at: Place, shards: Shards, reason: str) -> Record:
        self._open.append(f"{at.name}.{at.place}")
        return not_combined(shards.record, reason)

    def _measured_like(self, made: Record) -> Record:
        """Return a record with the numbers of the same tensor as a rank has measured it, where one has."""
        measured = self._measured.get(_loose(made))
        if measured is not None and all(_near(made.get(key), measured.get(key), made) for key in ("Mean", "Norm")):
            made.update({key: measured[key] for key in ("Mean", "Norm") if key in made and key in measured})
        return made


def _loose(record: Record) -> tuple[Any, ...]:
    return element_count(record.get("shape")), record.get("dtype"), str(record.get("Max")), str(record.get("Min"))


def _near(a: Any, b: Any, record: Record) -> bool:
    left, right = real(a), real(b)
    if left is None or right is None:
        return left is right
    scale = max(abs(left), abs(right), abs(real(record.get("Max")) or 0.0), abs(real(record.get("Min")) or 0.0))
    return abs(left - right) <= _ROUNDING * scale


def _some_agree(variants: list[tuple[Record, list[int]]], reference: Record | None) -> bool:
    """Return whether some ranks have the other side's value and some have not."""
    found = {reference is not None and agree(record, reference) for record, _ in variants}
    return found == {True, False}
