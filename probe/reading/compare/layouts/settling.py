# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gives each tensor of one side its record in the whole.

A tensor whose shape is smaller than the other side's in one axis is the ranks' parts put together. One of equal shape
is the same on all ranks, or a term of a sum: then a later collective has the sum. All else is not combined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.reading.compare.judging.parts import Stored
from probe.reading.compare.layouts.entries import GIVEN, tensors_given, values
from probe.reading.compare.layouts.placed import Placed
from probe.reading.compare.layouts.shards import (
    ALONE,
    GRID,
    ODD,
    WHOLE,
    Shards,
    Variant,
    agree,
    not_combined,
)
from probe.reading.compare.layouts.side import MOVING, Place, Side
from probe.reading.dumps.flow import content_key, is_constant, loose_key
from probe.reading.dumps.values import Record, greatest, is_tensor, real

#: how exactly two ways to add up agree: sums in float64
_ROUNDING = 1e-12
#: those of which the result is a float32
_ROUNDING_32 = 1e-6
_SUMS = ("Mean", "Norm")


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
        if name not in side.partners or planned is None:
            return self._of_further(name)
        found: dict[str, Any] = {}
        for place, shards in planned.items():
            made = self._record(Place(name, place), shards)
            if made is shards.record:
                continue
            made = self._like_theirs(name, place, made)
            found[place] = made
            key = content_key(shards.record)
            if key is not None:
                self._made.setdefault(key, made)
        return found

    def _of_further(self, name: str) -> dict[str, Any]:
        """Return the records of a call more: of the same tensors as the calls around it."""
        found: dict[str, Any] = {}
        for place, leaf in tensors_given(self._side.data[name]).items():
            made = self._made.get(content_key(leaf))
            if made is not None and "not_combined" not in made:
                found[place] = made
        return found

    def _folders(self, name: str) -> list[str]:
        """Return the folders of the ranks that have an entry."""
        stage = self._side.stages.stage_of[name]
        return [folder.path for folder in self._side.group.stages[stage]]

    def _record(self, at: Place, shards: Shards) -> Record:
        if shards.axis == WHOLE:
            return self._of_all_ranks(at, shards)
        if isinstance(shards, Placed) and shards.axis == GRID:
            return self._gathered(at, shards)
        if shards.axis == ALONE:
            return self._unknown(at, shards, "one side has more tensors in a list")
        if shards.axis != ODD and self._fits_length(at, shards):
            return self._joined(at, shards)
        if shards.same:
            return shards.record
        return self._unknown(at, shards, "the parts do not make the other side's shape")

    def _gathered(self, at: Place, shards: Placed) -> Record:
        """Return the record of a tensor whose layout was recorded."""
        made = shards.gathered(self._folders(at.name))
        if made is None:
            return self._unknown(at, shards, "the ranks have terms of a sum, and no arrays")
        if self._other.group.tp == 1:  # as far as that is one tensor
            theirs = self._their_values(self._side.partners[at.name]).get(at.place, {})
            if theirs.get("shape") != made["shape"]:
                return self._unknown(at, shards, "the parts do not fit")
        return made

    def _joined(self, at: Place, shards: Shards) -> Record:
        """Return the record of a tensor whose parts make the other side's shape."""
        if shards.same and self._other.group.tp > 1:
            is_parameter = at.place.startswith("parameters.")
            if not is_parameter and not is_constant(shards.record):  # a piece of a gathered tensor
                return self._unknown(at, shards, "all ranks have the same piece")
        return self._measured_like(shards.whole(self._folders(at.name)))

    def _fits_length(self, at: Place, shards: Shards) -> bool:
        other = self._other
        partner = self._side.partners[at.name]
        if other.group.tp > 1:
            theirs = other.shards.get(partner, {}).get(at.place)
            if theirs is None or theirs.axis != shards.axis:
                return False
            return theirs.length == shards.length
        shape = self._their_values(partner)[at.place]["shape"]
        return bool(shape[shards.axis] == shards.length)

    def _their_values(self, partner: str) -> dict[str, Any]:
        """Return the values of an entry of the other side; those of the last one are kept."""
        last, known = self._last
        if last == partner:
            return known
        read = dict(values(self._theirs.get(partner, {})))
        self._last = (partner, read)
        return read

    def _reference(self, at: Place) -> Record | None:
        """Return the other side's record of a tensor, where it is known as a whole."""
        partner = self._side.partners[at.name]
        if self._other.group.tp > 1:
            theirs = self._other.shards.get(partner, {}).get(at.place)
            return theirs.record if theirs is not None and theirs.agrees else None
        return self._their_values(partner).get(at.place)

    def _of_all_ranks(self, at: Place, shards: Shards) -> Record:
        """Return the record of a tensor that every rank has in full."""
        if shards.same:
            return shards.record
        reference = self._reference(at)
        variants = shards.variants or []
        total = self._side.sums.get(content_key(shards.record))
        if total is not None and total.name != at.name:
            return self._sum(total, at, shards, reference)
        is_outside = at in self._side.outside and _some_agree(variants, reference)
        if is_outside or self._must_agree(at, shards):
            return self._deviating(at, variants, reference)
        return self._unknown(at, shards, "the ranks differ")

    def _must_agree(self, at: Place, shards: Shards) -> bool:
        """Return whether all ranks must have the same: a parameter, or the output of calls that are given the same."""
        if isinstance(shards, Placed) or at in self._side.given_parameters:
            return True
        if at.place.startswith("parameters."):
            return MOVING.search(at.place) is None
        return not at.place.startswith(GIVEN) and self._side.must_agree(at.name)

    def _sum(self, total: Place, at: Place, shards: Shards, reference: Record | None) -> Record:
        added = self._side.shards[total.name][total.place]
        if added.axis >= 0:
            return self._measured_like(added.whole(self._folders(total.name)))
        if added.agrees:
            return added.record
        if added.variants:
            return self._deviating(total, added.variants, reference)
        return self._unknown(at, shards, "the sum is not known")

    def _deviating(self, at: Place, variants: list[Variant], reference: Record | None) -> Record:
        """Return the record of a rank that is apart from the other side, while another one agrees with it."""
        chosen = variants[0]
        if reference is not None and _some_agree(variants, reference):
            chosen = next(own for own in variants if not agree(own.record, reference))
        record = chosen.record
        if not record.get("data_name"):
            return record
        folder = self._folders(at.name)[chosen.ranks[0]]
        return {**record, "stored": Stored((folder,))}

    def _unknown(self, at: Place, shards: Shards, reason: str) -> Record:
        self._unknown_names.append(f"{at.name}.{at.place}")
        return not_combined(shards.record, reason)

    def _measured_like(self, made: Record) -> Record:
        """Return a record with the numbers of the same tensor as a rank has measured it, where one has."""
        measured = self._measured.get(loose_key(made))
        if measured is not None and _have_near_sums(made, measured, _ROUNDING_32):
            made.update({key: measured[key] for key in _SUMS if key in made and key in measured})
        return made

    def _like_theirs(self, name: str, place: str, made: Record) -> Record:
        """Return a record with the other side's sums, where its own are apart from them by rounding alone."""
        theirs = self._their_values(self._side.partners[name]).get(place)
        if theirs is None or not is_tensor(theirs) or "not_combined" in theirs:
            return made
        has_same_shape = theirs.get("shape") == made.get("shape")
        if not has_same_shape or loose_key(theirs) != loose_key(made):
            return made
        if not _have_near_sums(made, theirs, _rounding(theirs)):
            return made
        # sums of parts, added up, are not bitwise those of the whole: that is no difference between the sides
        their_sums = {key: theirs[key] for key in _SUMS if key in made}
        return {**made, **their_sums}


def _rounding(record: Record) -> float:
    """Return how exact the sums of a record are: a device's are float32."""
    import numpy as np  # a comparison of equal layouts needs none of it

    with np.errstate(over="ignore"):
        for key in _SUMS:
            number = real(record.get(key))
            if number is not None and float(np.float32(number)) != number:
                return _ROUNDING
    return _ROUNDING_32


def _have_near_sums(a: Record, b: Record, rounding: float) -> bool:
    return all(_near(key, a, b, rounding) for key in _SUMS)


def _near(key: str, a: Record, b: Record, rounding: float) -> bool:
    """Return whether a sum differs by no more than rounding, for the size of the numbers that it adds up."""
    left = real(a.get(key))
    right = real(b.get(key))
    if left is None or right is None:
        return left is right
    return abs(left - right) <= rounding * max(abs(left), abs(right), greatest(a))


def _some_agree(variants: list[Variant], reference: Record | None) -> bool:
    """Return whether some of the variants agree with a record, and others do not."""
    if reference is None:
        return False
    agreeing = [agree(variant.record, reference) for variant in variants]
    return any(agreeing) and not all(agreeing)
