# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the ranks of two layouts together: two documents of the whole model, which are compared like any others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.compare.judging.parts import Stored
from probe.reading.compare.layouts.entries import values, with_values
from probe.reading.compare.layouts.settling import Settling
from probe.reading.compare.layouts.side import Group, Side
from probe.reading.compare.layouts.stages import has_micro_batches
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.document import Document
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD, parse
from probe.reading.dumps.flow import is_constant, loose_key
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import Record, grouped, is_tensor, plain

#: Cells that communicate and compute nothing
_REGION = re.compile(
    r"(Copy|Reduce|Gather|Scatter)\w*(To|From)\w*Region|^All(Reduce|Gather)|^ReduceScatter"
)


class Combining:
    """Puts the ranks of both sides together."""

    def __init__(self, groups: tuple[Group, Group], mapping: Mapping[str, str] | None) -> None:
        self.sides = Side(groups[0]), Side(groups[1])
        #: the calls that only the layout needs, by side
        self.left_out: tuple[set[str], set[str]] = (set(), set())
        self.open: list[str] = []  # the tensors that are not combined
        self._notes: list[Sentence] = []
        group_a, group_b = groups
        #: whether tensors are put together, and not stages alone
        self._has_shards = group_a.tp != group_b.tp
        if len(group_a.stages) > 1 or len(group_b.stages) > 1:
            self._check_order()
        self._pair(mapping)
        for side in self.sides:
            if self._is_put_together(side):
                side.plan_sums()
                self._notes += side.read_others()

    def _is_put_together(self, side: Side) -> bool:
        """Return whether the tensors of a side are made of those of its ranks."""
        return self._has_shards and side.group.tp > 1

    def _check_order(self) -> None:
        """Raise UsageError when only Cells could tell which calls of several micro-batches belong together."""
        for side, letter in zip(self.sides, "AB"):
            if not side.construct and has_micro_batches(side.stages.documents[0].data):
                raise UsageError(say("error.micro", side=letter))

    def documents(self) -> tuple[Document, Document]:
        """Return the documents of A and B as a whole."""
        side_a, side_b = self.sides
        first = self._document(0, side_b.data if side_b.group.tp == 1 else {})
        second = self._document(1, side_a.data if side_a.group.tp == 1 else first.data)
        if self.open:
            note = say("compare.not_combined", count=len(self.open), name=self.open[0])
            self._notes.append(note)
        out_a, out_b = self.left_out
        count = len(out_a) + len(out_b)
        if count:
            self._notes.append(say("compare.left_out", count=count))
        first.notes.extend(self._notes)
        return first, second

    def _pair(self, mapping: Mapping[str, str] | None) -> None:
        """Pair the entries by the records of the first ranks, and decide how each tensor is put together."""
        side_a, side_b = self.sides
        alignment = Alignment(_first(side_a), _first(side_b), mapping, by_lines=False)
        flow_a, flow_b = alignment.flows
        for a, b in alignment.b_of.items():
            name_a = flow_a.names[a]
            name_b = flow_b.names[b]
            self._note_partner(side_a, name_a, side_b, name_b)
            self._note_partner(side_b, name_b, side_a, name_a)
        for number, side in enumerate(self.sides):
            self._leave_out(number)
            if self._is_put_together(side):
                side.find_outside(alignment.flows[number])

    def _note_partner(self, side: Side, name: str, other: Side, partner: str) -> None:
        side.partners[name] = partner
        if self._is_put_together(side):
            side.plan(name, dict(values(other.data[partner])))

    def _leave_out(self, number: int) -> None:
        """Find the collectives that only one layout needs, and the Cells that hold nothing else."""
        side = self.sides[number]
        out = self.left_out[number]
        inner = grouped((parent, name) for name, parent in side.construct.items() if parent)
        for name in side.data:
            parts = parse(name)
            is_alone = name not in side.partners
            if name in side.containers:
                known = [child for child in inner[name] if child in side.data]
                if is_alone and out.issuperset(known):
                    out.add(name)
            elif is_collective(parts):
                if is_alone or (self._has_shards and side.is_own_group(name)):
                    out.add(name)
            elif is_alone and parts.kind == CELL and _REGION.search(parts.api):
                out.add(name)

    def _document(self, number: int, theirs: Mapping[str, Any]) -> Document:
        side = self.sides[number]
        out = self.left_out[number]
        is_made = self._is_put_together(side)
        settling = Settling(self.sides, number, self.open, theirs) if is_made else None
        has_several = len(side.group.ranks) > 1
        data: dict[str, Any] = {}
        for name, entry in side.data.items():
            if name in out:
                continue
            settled = settling.entry(name) if settling else {}
            if self._has_shards and name in side.partners:
                settled.update(self._sizes(number, name))
            made = with_values(entry, settled) if settled else entry
            if has_several:
                stage = side.stages.stage_of[name]
                _note_folder(made, side.group.stages[stage][0])
            data[name] = made
        if settling:
            out |= passed_on(data, side)
            data = {name: entry for name, entry in data.items() if name not in out}
        construct = {name: parent for name, parent in side.construct.items() if name not in out}
        document = side.document
        return Document(document.header, data, document.stacks, lambda: construct, document.notes)

    def _sizes(self, number: int, name: str) -> dict[str, Any]:
        """Return plain numbers that are a rank's part of a size, as the whole has them."""
        side = self.sides[number]
        other = self.sides[1 - number]
        if side.group.tp == 1:
            return {}
        partner = side.partners[name]
        own_values = dict(values(side.data[name]))
        their_values = dict(values(other.data[partner]))
        own_lengths = _lengths(own_values)
        their_lengths = _lengths(their_values)
        sizes: dict[str, Any] = {}
        for place, leaf in own_values.items():
            own = plain(leaf)
            theirs = plain(their_values.get(place))
            if type(own) is not int or type(theirs) is not int or own == theirs:
                continue
            whole = own * side.group.tp
            is_length = own in own_lengths and theirs in their_lengths
            if is_length and whole == theirs * other.group.tp:
                sizes[place] = {"type": "int", "value": whole}
        return sizes


def _note_folder(entry: Any, folder: DumpFolder) -> None:
    """Note where the arrays of an entry are."""
    for _, leaf in values(entry):
        if is_tensor(leaf) and leaf.get("data_name"):
            leaf.setdefault("stored", Stored((folder.path,)))


def _lengths(found: Mapping[str, Any]) -> set[int]:
    """Return the lengths of all axes of tensors."""
    lengths: set[int] = set()
    for leaf in found.values():
        shape = leaf.get("shape") if is_tensor(leaf) else None
        if type(shape) is list:
            lengths.update(length for length in shape if type(length) is int)
    return lengths


def _first(side: Side) -> Dump:
    """Return the dump of the first ranks."""
    return Dump(side.group.stages[0][0], side.document)


def passed_on(data: Mapping[str, Any], side: Side) -> set[str]:
    """Return the calls without a partner that pass on a tensor of a call that has one: shards that are joined again."""
    made: set[tuple[Any, ...]] = set()
    passing: set[str] = set()
    for name, entry in data.items():
        if parse(name).direction != FORWARD or name in side.containers:
            continue
        outputs = [leaf for place, leaf in values(entry) if place.startswith("output.")]
        records = [leaf for leaf in outputs if is_tensor(leaf)]
        known = [record for record in records if _is_known(record)]
        keys = {loose_key(record) for record in known}
        if name in side.partners:
            made |= keys
        elif keys and len(known) == len(records) and keys <= made:
            passing.add(name)
    return passing


def _is_known(record: Record) -> bool:
    return not is_constant(record) and "not_combined" not in record
