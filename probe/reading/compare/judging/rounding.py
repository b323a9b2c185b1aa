# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rounding of a sum that cancels: tensors that hold it are near zero, and no difference.

Such a tensor may be any small number, and so may all that is made of it. It is near zero only where a call that adds
has made it, it is small beside the terms, and the difference is bounded by the tolerance of the terms. Its distance is
then by the size of the terms.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.dumps.entry_name import API, BACKWARD, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, count_of, real

#: a result that is so much smaller than a term has cancelled
_SMALL = 1e-3
#: norms beyond tell nothing
_HUGE = 1e300
#: statistics give the least distance of an input, which may be so many times larger
_GROWN = 10.0
#: APIs that add: their result may cancel. All backwards do
_SUMS = re.compile(
    r"_*[ri]?(add|sub|matmul)_*|\w*(sum|mean|reduce|conv|matmul|dense|linear|einsum|norm|pool|average)\w*|bmm|mm|"
    r"addn|accumulate_n|dot|inner|outer|tensoradd|biasadd|bias_add|lerp",
    re.IGNORECASE,
)


class _Rounding(NamedTuple):
    """How far apart two tensors are that hold the rounding of a sum."""

    bounded: Distance  # by the size of the terms of the sum
    relative: float  # by their own size


class Rounding:
    """Knows the tensors that hold such rounding."""

    def __init__(self) -> None:
        self._known: dict[Any, _Rounding] = {}  # content in A and in B -> how far apart

    def follow(self, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call, in the order in which the calls ran: rounding that differs is near zero."""
        is_forward_api = parts.kind == API and parts.direction != BACKWARD
        if not is_forward_api or _SUMS.fullmatch(parts.api):
            slots = self._without_rounding(slots)
            slots = self._without_carried(slots)
        return self._after_rounding(slots) if self._known else slots

    def _after_rounding(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call: rounding stays it, and so is an output no farther apart than what went in."""
        after = [self._known_rounding(slot) for slot in slots]
        inputs = [slot for slot in after if slot.is_input]
        if any(slot.is_hard for slot in inputs):
            return after
        near = [_content(slot) for slot in inputs if slot.verdict == Verdict.NEAR_ZERO]
        given = [self._known[content] for content in near if content in self._known]
        if not given:
            return after
        worst = max(given, key=lambda rounding: rounding.relative)
        most = _GROWN * worst.relative
        for number, slot in enumerate(after):
            relative = slot.distance.rel_l2 or 0.0
            if slot.verdict == Verdict.DIFFERS and relative <= most:
                after[number] = self._rounded(slot, worst.bounded)
        return after

    def _known_rounding(self, slot: Slot) -> Slot:
        """Return a place; a tensor that is known to hold rounding is near zero."""
        if slot.verdict != Verdict.DIFFERS:
            return slot
        known = self._known.get(_content(slot))
        if known is None:
            return slot
        return slot._replace(verdict=Verdict.NEAR_ZERO, distance=known.bounded)

    def _rounded(self, slot: Slot, bounded: Distance) -> Slot:
        """Return a place that holds rounding, with its distance by the size of the terms that were added."""
        relative = slot.distance.rel_l2 or 0.0
        self._known[_content(slot)] = _Rounding(bounded, relative)
        return slot._replace(verdict=Verdict.NEAR_ZERO, distance=bounded)

    def _of_terms(self, slot: Slot, size: float) -> Slot:
        bounded = slot.distance._replace(rel_l2=_gap(slot) / size)
        return self._rounded(slot, bounded)

    def _without_carried(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a sum whose inputs agree but for noise: outputs that cancel hold the inputs' noise."""
        inputs = [slot for slot in slots if slot.is_input]
        if any(slot.is_hard for slot in inputs):
            return slots
        tensors = [slot for slot in inputs if slot.are_tensors]
        most = max(map(_size, tensors), default=0.0)
        if not any(map(_gap, tensors)) or not most < _HUGE:
            return slots
        after: list[Slot] = []
        for slot in slots:
            if slot.verdict == Verdict.DIFFERS and _is_carried(slot, tensors, most):
                after.append(self._of_terms(slot, most))
            else:
                after.append(slot)
        return after

    def _without_rounding(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call: one that is small beside a larger one, and differs by rounding, is near zero."""
        sizes = [_known_size(slot) for slot in slots]
        most = max(sizes, default=0.0)
        small: set[str] = set()
        for slot, size in zip(slots, sizes):
            is_small = 0.0 <= size < _SMALL * most
            if is_small and slot.verdict == Verdict.DIFFERS and _is_rounding(slot, slots):
                small.add(slot.place)
        if not small:
            return slots
        return [self._of_terms(slot, most) if slot.place in small else slot for slot in slots]


def _content(slot: Slot) -> Any:
    return content_key(slot.a), content_key(slot.b)


def _known_size(slot: Slot) -> float:
    """Return the norm of a term as ``_size`` does; -1.0 where that of one side is not known, or is huge."""
    if type(slot.a) is not dict or type(slot.b) is not dict:
        return -1.0
    norm_a = slot.a.get("Norm")
    norm_b = slot.b.get("Norm")
    if type(norm_a) is not float or type(norm_b) is not float:
        return -1.0
    return min(norm_a, norm_b) if norm_a < _HUGE and norm_b < _HUGE else -1.0


def _size(slot: Slot) -> float:
    """Return the norm of a term: the lesser one of both sides, as one of them may be wrong."""
    return min(real(slot.a.get("Norm")) or 0.0, real(slot.b.get("Norm")) or 0.0)


def _is_rounding(slot: Slot, slots: list[Slot]) -> bool:
    """Return whether two tensors are so small beside a larger one of their call that their difference is rounding.

    A sum of n numbers that should be zero is as large as their rounding: larger by the root of n than that of one. In
    norms the root of n falls out.
    """
    apart = slot.distance.rel_l2
    tolerance = _tolerance(slot)
    count = count_of(slot.a)
    if apart is None or not tolerance or count is None:
        return False
    larger = max(slot.a["Norm"], slot.b["Norm"])
    gap = apart * larger
    for other in slots:
        norm = _known_size(other)
        if larger < _SMALL * norm and gap <= tolerance * norm and _may_hold(other.a, count):
            return True
    return False


def _may_hold(term: Record, count: int) -> bool:
    """Return whether a term has fractions, and as many elements."""
    size = count_of(term) or 0
    return size >= count and of_dtype(term.get("dtype")) > 0.0


def _tolerance(slot: Slot) -> float:
    return max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))


def _gap(slot: Slot) -> float:
    """Return the norm of the difference of two tensors, as far as it is known; 0.0 where nothing is known."""
    left = real(slot.a.get("Norm"))
    right = real(slot.b.get("Norm"))
    relative = slot.distance.rel_l2
    if left is None or right is None or relative is None:
        return 0.0
    gap = relative * max(left, right)
    return gap if gap < _HUGE else 0.0


def _is_carried(slot: Slot, inputs: list[Slot], most: float) -> bool:
    """Return whether an output differs by no more than a sum over an input carries: the root of the count of terms.

    ``most`` is the greatest norm of an input: its tolerance bounds the difference too.
    """
    gap = _gap(slot)
    count = count_of(slot.a)
    if not gap or not count:
        return False
    if not gap <= _GROWN * _tolerance(slot) * most:
        return False
    for given in inputs:
        size = count_of(given.a) or 0
        terms = max(size / count, 1.0)
        if gap <= _GROWN * _gap(given) * terms**0.5:
            return True
    return False
