# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the ranks of two layouts together: two documents of the whole model, which are compared like any others.

A tensor whose shape is smaller than the other side's in one axis is the ranks' parts put together. One of equal shape
is the same on all ranks, or a term of a sum: then a later collective has the sum. All else is not combined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.compare.judging.arrays import Stored
from probe.reading.compare.layouts.entries import values, with_values
from probe.reading.compare.layouts.settle import Settling, passed_on
from probe.reading.compare.layouts.side import Group, Side
from probe.reading.compare.layouts.stages import has_micro_batches
from probe.reading.compare.origins.origin import is_collective
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.dumps import entry_name
from probe.reading.dumps.document import Document
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.values import is_tensor, plain

#: Cells that communicate and compute nothing
_REGION = re.compile(r"(Copy|Reduce|Gather|Scatter)\w*(To|From)\w*Region|^All(Reduce|Gather)|^ReduceScatter")


class Combining:
    """Puts the ranks of both sides together."""

    def __init__(self, groups: tuple[Group, Group], mapping: Mapping[str, str] | None) -> None:
        self.sides = Side(groups[0]), Side(groups[1])
        self.left_out: tuple[set[str], set[str]] = (set(), set())  # the calls that only the layout needs, by side
        self.open: list[str] = []  # the tensors that are not combined
        self._notes: list[Sentence] = []
        self._tensors = groups[0].tp != groups[1].tp
        if max(len(group.stages) for group in groups) > 1:
            self._check_order()
        self._pair(mapping)
        if self._tensors:
            for side in self.sides:
                if side.group.tp > 1:
                    side.plan_sums()
                    self._notes += side.read_others()

    def _check_order(self) -> None:
        """Raise UsageError when only Cells could tell which calls of several micro-batches belong together."""
        for side, letter in zip(self.sides, "AB"):
            if not side.construct and has_micro_batches(side.stages.documents[0].data):
                raise UsageError(
                    f"{letter} has several micro-batches and no Cells, so that its stages cannot be put together. "
                    "Record it at level mix or L0"
                )

    def documents(self) -> tuple[Document, Document]:
        """Return the documents of A and B as a whole."""
        sides = self.sides
        first = self._document(0, sides[1].data if sides[1].group.tp == 1 else {})
        second = self._document(1, sides[0].data if sides[0].group.tp == 1 else first.data)
        if self.open:
            self._notes.append(say("compare.not_combined", count=len(self.open), name=self.open[0]))
        count = sum(len(names) for names in self.left_out)
        if count:
            self._notes.append(say("compare.left_out", count=count))
        first.notes.extend(self._notes)
        return first, second

    def _pair(self, mapping: Mapping[str, str] | None) -> None:
        """Pair the entries by the records of the first ranks, and decide how each tensor is put together."""
        sides = self.sides
        dumps = [Dump(side.group.stages[0][0], side.document) for side in sides]
        alignment = Alignment(dumps[0], dumps[1], mapping, by_lines=False)
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
                side.find_outside(flows[number])

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

    def _document(self, number: int, theirs: Mapping[str, Any]) -> Document:
        side, out = self.sides[number], self.left_out[number]
        combined = self._tensors and side.group.tp > 1
        settling = Settling(self.sides, number, self.open, theirs) if combined else None
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
        if settling:
            out |= passed_on(data, side)
            data = {name: entry for name, entry in data.items() if name not in out}
        construct = {name: parent for name, parent in side.construct.items() if name not in out}
        document = side.document
        return Document(document.header, data, document.stacks, lambda: construct, document.notes)

    def _sizes(self, number: int, name: str) -> dict[str, Any]:
        """Return plain numbers that are a rank's part of a size, as the whole has them."""
        side, other = self.sides[number], self.sides[1 - number]
        if side.group.tp == 1:
            return {}
        own_values, theirs = (dict(values(half)) for half in (side.data[name], other.data[side.partners[name]]))
        own_sizes, their_sizes = _lengths(own_values), _lengths(theirs)
        found: dict[str, Any] = {}
        for place, leaf in own_values.items():
            own, their = plain(leaf), plain(theirs.get(place))
            if type(own) is not int or type(their) is not int or own == their:
                continue
            is_length = own in own_sizes and their in their_sizes
            if is_length and own * side.group.tp == their * other.group.tp:
                found[place] = {"type": "int", "value": own * side.group.tp}
        return found


def _lengths(found: Mapping[str, Any]) -> set[Any]:
    """Return the lengths of the axes of all tensors of an entry."""
    shapes = [leaf.get("shape") for leaf in found.values() if is_tensor(leaf)]
    return {length for shape in shapes if type(shape) is list for length in shape if type(length) is int}
