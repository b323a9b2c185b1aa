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
from probe.reading.compare.judging.parts import Stored
from probe.reading.compare.layouts.shards import (
    ALONE,
    GRID,
    ODD,
    WHOLE,
    Placed,
    Shards,
    agree,
    not_combined,
)
from probe.reading.compare.layouts.side import (
    GIVEN,
    MOVING,
    Group,
    Place,
    Side,
    values,
    with_values,
)
from probe.reading.compare.layouts.stages import has_micro_batches
from probe.reading.compare.origins.origin import is_collective
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.dumps.document import Document
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD, parse
from probe.reading.dumps.flow import content_key, is_constant, loose_key
from probe.reading.dumps.values import Record, grouped, is_tensor, plain, real

#: how exactly two ways to add up agree: sums in float64, and those of which the result is a float32
_ROUNDING = 1e-12
_ROUNDING_32 = 1e-6
_SUMS = ("Mean", "Norm")
#: Cells that communicate and compute nothing
_REGION = re.compile(
    r"(Copy|Reduce|Gather|Scatter)\w*(To|From)\w*Region|^All(Reduce|Gather)|^ReduceScatter"
)


def passed_on(data: Mapping[str, Any], side: Side) -> set[str]:
    """Return the calls without a partner that pass on a tensor of a call that has one: shards that are joined again."""
    made: set[tuple[Any, ...]] = set()
    found: set[str] = set()
    for name, entry in data.items():
        if parse(name).direction != FORWARD or name in side.containers:
            continue
        outputs = [
            leaf for place, leaf in values(entry) if place.startswith("output.") and is_tensor(leaf)
        ]
        keys = [
            loose_key(leaf)
            for leaf in outputs
            if not is_constant(leaf) and "not_combined" not in leaf
        ]
        if name in side.partners:
            made.update(keys)
        elif keys and len(keys) == len(outputs) and made.issuperset(keys):
            found.add(name)
    return found


class Settling:
    """Gives each tensor of one side its record in the whole.

    ``unknown`` gets the tensors that are not combined. ``theirs`` are the other side's entries as the whole has them;
    {} where they are not made yet.
    """

    def __init__(
        self, sides: tuple[Side, Side], number: int, unknown: list[str], theirs: Mapping[str, Any]
    ) -> None:
        self._side = sides[number]
        self._other = sides[1 - number]
        self._unknown_names = unknown
        self._theirs = theirs
        self._folders = [[folder.path for folder in stage] for stage in self._side.group.stages]
        self._measured: dict[Any, Record] = {}
        self._made: dict[Any, Record] = {}
        self._last: tuple[str | None, dict[str, Any]] = (None, {})
        for planned in self._side.shards.values():
            for shards in planned.values():
                if shards.agrees:
                    self._measured.setdefault(loose_key(shards.record), shards.record)

    def entry(self, name: str) -> dict[str, Any]:
        """Return the records of an entry that are not those of the first rank, by their places."""
        side = self._side
        planned = side.shards.get(name)
        found: dict[str, Any] = {}
        if (
            name not in side.partners or planned is None
        ):  # a call more: of the same tensors as the calls around it
            for place, leaf in values(side.data[name]):
                made = self._made.get(content_key(leaf)) if is_tensor(leaf) else None
                if made is not None and "not_combined" not in made and place.startswith(GIVEN):
                    found[place] = made
            return found
        for place, shards in planned.items():
            made = self._record(Place(name, place), shards)
            if made is shards.record:
                continue
            found[place] = made = self._like_theirs(name, place, made)
            key = content_key(shards.record)
            if key is not None:
                self._made.setdefault(key, made)
        return found

    def _record(self, at: Place, shards: Shards) -> Record:  # noqa: PLR0911 (a line for each kind)
        if shards.axis == WHOLE:
            return (
                shards.record if shards.same else self._of_variants(at, shards, self._reference(at))
            )
        if isinstance(shards, Placed) and shards.axis == GRID:
            made = shards.gathered(self._folders[self._side.stages.stage_of[at.name]])
            if made is None:
                return self._unknown(at, shards, "the ranks have terms of a sum, and no arrays")
            theirs = self._their_values(self._side.partners[at.name]).get(at.place, {})
            fits = (
                self._other.group.tp > 1 or theirs.get("shape") == made["shape"]
            )  # as far as that is one tensor
            return made if fits else self._unknown(at, shards, "the parts do not fit")
        if shards.axis == ALONE:
            return self._unknown(at, shards, "one side has more tensors in a list")
        if shards.axis != ODD and self._fits_length(at, shards):
            is_piece = not at.place.startswith("parameters.") and not is_constant(
                shards.record
            )  # of a gathered tensor
            if is_piece and shards.same and self._other.group.tp > 1:
                return self._unknown(at, shards, "all ranks have the same piece")
            return self._measured_like(
                shards.whole(self._folders[self._side.stages.stage_of[at.name]])
            )
        if shards.same:
            return shards.record
        return self._unknown(at, shards, "the parts do not make the other side's shape")

    def _fits_length(self, at: Place, shards: Shards) -> bool:
        other = self._other
        partner = self._side.partners[at.name]
        if other.group.tp > 1:
            theirs = other.shards.get(partner, {}).get(at.place)
            return (
                theirs is not None and theirs.axis == shards.axis and theirs.length == shards.length
            )
        shape = self._their_values(partner)[at.place]["shape"]
        return bool(shape[shards.axis] == shards.length)

    def _their_values(self, partner: str) -> dict[str, Any]:
        """Return the values of an entry of the other side; those of the last one are kept."""
        if self._last[0] != partner:
            self._last = partner, dict(values(self._theirs.get(partner, {})))
        return self._last[1]

    def _reference(self, at: Place) -> Record | None:
        """Return the other side's record of a tensor, where it is known as a whole."""
        partner = self._side.partners[at.name]
        if self._other.group.tp > 1:
            theirs = self._other.shards.get(partner, {}).get(at.place)
            return theirs.record if theirs is not None and theirs.agrees else None
        return self._their_values(partner).get(at.place)

    def _of_variants(self, at: Place, shards: Shards, reference: Record | None) -> Record:
        """Return the record of a tensor that every rank has in full, but not the same."""
        variants = shards.variants or []
        total = self._side.sums.get(content_key(shards.record))
        if total is not None and total.name != at.name:
            return self._sum(total, at, shards, reference)
        is_fixed = at.place.startswith("parameters.") and not MOVING.search(at.place)
        parameter = is_fixed or at in self._side.given_parameters
        must = isinstance(shards, Placed) or (
            not at.place.startswith(GIVEN) and self._side.must_agree(at.name)
        )
        if parameter or must or (at in self._side.outside and _some_agree(variants, reference)):
            return self._deviating(at, variants, reference)
        return self._unknown(at, shards, "the ranks differ")

    def _sum(self, total: Place, at: Place, shards: Shards, reference: Record | None) -> Record:
        added = self._side.shards[total.name][total.place]
        if added.axis >= 0:
            return self._measured_like(
                added.whole(self._folders[self._side.stages.stage_of[total.name]])
            )
        if added.agrees:
            return added.record
        if added.variants:
            return self._deviating(total, added.variants, reference)
        return self._unknown(at, shards, "the sum is not known")

    def _deviating(
        self, at: Place, variants: list[tuple[Record, list[int]]], reference: Record | None
    ) -> Record:
        """Return the record of a rank that is apart from the other side, while another one agrees with it."""
        record, ranks = variants[0]
        if reference is not None and _some_agree(variants, reference):
            record, ranks = next(item for item in variants if not agree(item[0], reference))
        if not record.get("data_name"):
            return record
        return {
            **record,
            "stored": Stored((self._folders[self._side.stages.stage_of[at.name]][ranks[0]],)),
        }

    def _unknown(self, at: Place, shards: Shards, reason: str) -> Record:
        self._unknown_names.append(f"{at.name}.{at.place}")
        return not_combined(shards.record, reason)

    def _measured_like(self, made: Record) -> Record:
        """Return a record with the numbers of the same tensor as a rank has measured it, where one has."""
        measured = self._measured.get(loose_key(made))
        if measured is not None and all(_near(key, made, measured, _ROUNDING_32) for key in _SUMS):
            made.update({key: measured[key] for key in _SUMS if key in made and key in measured})
        return made

    def _like_theirs(self, name: str, place: str, made: Record) -> Record:
        """Return a record with the other side's sums, where its own are apart from them by rounding alone."""
        theirs = self._their_values(self._side.partners[name]).get(place)
        if theirs is None or not is_tensor(theirs) or "not_combined" in theirs:
            return made
        if theirs.get("shape") != made.get("shape") or loose_key(theirs) != loose_key(made):
            return made
        if not all(_near(key, made, theirs, _rounding(theirs)) for key in _SUMS):
            return made
        # sums of parts, added up, are not bitwise those of the whole: that is no difference between the sides
        return {**made, **{key: theirs[key] for key in _SUMS if key in made}}


def _rounding(record: Record) -> float:
    """Return how exact the sums of a record are: a device's are float32."""
    sums = [number for number in (real(record.get(key)) for key in _SUMS) if number is not None]
    import numpy as np  # a comparison of equal layouts needs none of it

    with np.errstate(over="ignore"):
        short = all(float(np.float32(number)) == number for number in sums)
    return _ROUNDING_32 if short else _ROUNDING


def _near(key: str, a: Record, b: Record, rounding: float) -> bool:
    left = real(a.get(key))
    right = real(b.get(key))
    if left is None or right is None:
        return left is right
    scale = max(
        abs(left), abs(right), abs(real(a.get("Max")) or 0.0), abs(real(a.get("Min")) or 0.0)
    )
    return abs(left - right) <= rounding * scale


def _some_agree(variants: list[tuple[Record, list[int]]], reference: Record | None) -> bool:
    found = {reference is not None and agree(record, reference) for record, _ in variants}
    return found == {True, False}


class Combining:
    """Puts the ranks of both sides together."""

    def __init__(self, groups: tuple[Group, Group], mapping: Mapping[str, str] | None) -> None:
        self.sides = Side(groups[0]), Side(groups[1])
        self.left_out: tuple[set[str], set[str]] = (
            set(),
            set(),
        )  # the calls that only the layout needs, by side
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
                raise UsageError(say("error.micro", side=letter))

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
        side = self.sides[number]
        out = self.left_out[number]
        inner = grouped((parent, name) for name, parent in side.construct.items() if parent)
        for name in side.data:
            parts = parse(name)
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
        side = self.sides[number]
        out = self.left_out[number]
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
        side = self.sides[number]
        other = self.sides[1 - number]
        if side.group.tp == 1:
            return {}
        own_values, theirs = (
            dict(values(half)) for half in (side.data[name], other.data[side.partners[name]])
        )
        own_sizes = _lengths(own_values)
        their_sizes = _lengths(theirs)
        found: dict[str, Any] = {}
        for place, leaf in own_values.items():
            own = plain(leaf)
            their = plain(theirs.get(place))
            is_length = (
                type(own) is type(their) is int and own in own_sizes and their in their_sizes
            )
            if is_length and own != their and own * side.group.tp == their * other.group.tp:
                found[place] = {"type": "int", "value": own * side.group.tp}
        return found


def _lengths(found: Mapping[str, Any]) -> set[Any]:
    shapes = [leaf.get("shape") for leaf in found.values() if is_tensor(leaf)]
    return {
        length for shape in shapes if type(shape) is list for length in shape if type(length) is int
    }
