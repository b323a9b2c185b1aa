# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Compares two paired entries: each tensor gets a distance and a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from probe.naming import written_outputs
from probe.reading.compare.distances.bounds import APART, SAME, UNKNOWN, Distance, distance
from probe.reading.compare.distances.tolerance import Tolerances, of_dtype
from probe.reading.compare.frameworks.agreement import is_certain, is_noise, is_told, may_be_transposed
from probe.reading.compare.judging.verdicts import (
    BITS,
    CLOSE,
    DIFFERS,
    HARD,
    NEAR_ZERO,
    NOT_COMBINED,
    NUMBERS_EQUAL,
    ONE_SIDE,
    OTHER_BITS,
    SHAPE,
    TRANSPOSED,
    UNKNOWN_VALUE,
    Slot,
    is_state,
)
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Leaf, element_count, is_tensor, leaves, plain, real

#: key of an entry -> how places in it begin, and whether the call was given it
_PARTS = {
    "input_args": ("input.", True),
    "input_kwargs": ("kwargs.", True),
    "input": ("input.", True),
    "grad_output": ("input.", True),
    "parameters": ("parameters.", True),
    "model_parameters": ("model_parameters.", True),
    "attributes": ("attributes.", True),
    "output": ("output.", False),
    "output_kwargs": ("output_kwargs.", False),
    "grad_input": ("output.", False),
}
#: keys that other recorders, older dumps and merged shards lack: where one entry has none, nothing is known
_OPTIONAL = frozenset(("attributes", "model_parameters"))
_SMALL, _HUGE = 1e-3, 1e300
#: statistics give the least distance of an input, which may be so many times larger
_GROWN = 10.0
_NO_FLOOR = (0.0, 0.0)
_PLACES = tuple(map(str, range(64)))


#: finds the distance of two tensors from their arrays: (record of A, record of B, from statistics) -> distance
Refine = Callable[[Any, Any, Distance], Distance]


class Judge:
    """Compares entries.

    Args:
        tolerances: the tolerances.
        refine: looks at arrays; None where there are none.
        turned: finds the distance of A's transpose from B; None where both dumps are of one framework.
    """

    def __init__(self, tolerances: Tolerances, refine: Refine | None = None, turned: Refine | None = None) -> None:
        self._tolerances = tolerances
        self._refine = refine
        self._turned = turned
        self._rounding: set[Any] = set()
        self._distances: dict[tuple[int, int], Distance] = {}

    def slots(self, name: str, parts: EntryName, a: Any, b: Any, floor: tuple[float, float] = _NO_FLOOR) -> list[Slot]:
        """Return the places of two entries with their verdicts.

        Args:
            name: the entry's name in A.
            parts: the name, taken apart.
            a: the entry in A.
            b: the entry in B.
            floor: the tolerance that the calls before it have in A and in B; the lesser holds.
        """
        if not isinstance(a, dict) or not isinstance(b, dict) or parts.kind == GRADIENT or "type" in a:
            if isinstance(a, dict) and "type" in a:
                a, b = [a], [b]
            return self._eased(parts, self._part(name, "", parts, False, a, b, floor))
        found: list[Slot] = []
        unfinished = "pending" in a or "pending" in b or "error" in a or "error" in b
        for key in a if a.keys() == b.keys() else {**a, **b}:
            if key in _PARTS and not (key in _OPTIONAL and (key in a) != (key in b)):
                word, is_input = _PARTS[key]
                if is_input or not unfinished:
                    found += self._part(name, word, parts, is_input, a.get(key), b.get(key), floor)
        if type(a.get("parameters")) is dict and any(map(is_state, a["parameters"])):
            found = [slot._replace(is_input=False) if is_state(slot.place) else slot for slot in found]
        if parts.direction == FORWARD:
            found = _same_forms(found)
        return self._eased(parts, found)

    def _eased(self, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call; gradients of two frameworks may differ more than other values."""
        if self._turned is None or parts.direction == FORWARD or self._tolerances.has_noise:
            return slots
        return [
            slot._replace(verdict=CLOSE)
            if slot.verdict == DIFFERS and is_noise(slot.a, slot.b, slot.distance, self._tolerances.factor)
            else slot
            for slot in slots
        ]

    def follow(self, name: str, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call. A call turns rounding into rounding: its outputs are near zero too.

        A tensor that a rule of the user is for has the verdict of that rule; the others are judged as without it.

        Args:
            name: the entry's name in A.
            slots: the places of a call, in the order in which the calls ran.
        """
        if not self._tolerances.is_plain:
            self._tolerances.note([f"{name}.{slot.place}" for slot in slots if is_tensor(slot.a)])
        if self._tolerances.is_plain or DIFFERS not in [slot.verdict for slot in slots]:
            return self._follow(slots)
        return [
            before if self._tolerances.is_ruled(f"{name}.{before.place}") else after
            for before, after in zip(slots, self._follow(slots))
        ]

    def _follow(self, slots: list[Slot]) -> list[Slot]:
        if DIFFERS not in [slot.verdict for slot in slots]:
            return slots
        if not self._tolerances.has_noise:
            slots = self._without_carried(self._without_rounding(slots))
        if not self._rounding:
            return slots
        made = [
            slot._replace(verdict=NEAR_ZERO)
            if slot.verdict == DIFFERS and content_key(slot.a) in self._rounding
            else slot
            for slot in slots
        ]
        given = [slot.verdict for slot in made if slot.is_input and is_tensor(slot.a)]
        if given and all(verdict == NEAR_ZERO for verdict in given):
            made = [slot._replace(verdict=NEAR_ZERO) if slot.verdict == DIFFERS else slot for slot in made]
            self._rounding.update(content_key(slot.a) for slot in made if slot.verdict == NEAR_ZERO)
        return made

    def _without_carried(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call whose inputs agree but for noise: outputs that cancel hold the inputs' noise."""
        inputs = [slot for slot in slots if slot.is_input]
        if [slot for slot in inputs if slot.verdict in HARD]:
            return slots
        tensors = [slot for slot in inputs if is_tensor(slot.a) and is_tensor(slot.b)]
        given = [(_gap(slot), element_count(slot.a.get("shape"))) for slot in tensors]
        if not any(gap for gap, _ in given):
            return slots
        found = [
            slot._replace(verdict=NEAR_ZERO) if slot.verdict == DIFFERS and _is_carried(slot, given) else slot
            for slot in slots
        ]
        self._rounding.update(content_key(slot.a) for slot in found if slot.verdict == NEAR_ZERO)
        return found

    def _without_rounding(self, slots: list[Slot]) -> list[Slot]:
        norms = [(slot.a.get("Norm"), slot) for slot in slots if type(slot.a) is dict]
        known = [(norm, slot) for norm, slot in norms if type(norm) is float and norm < _HUGE]
        most = _SMALL * max([norm for norm, _ in known], default=0.0)
        if all(norm >= most for norm, _ in known):
            return slots
        small = {
            slot.place for norm, slot in known if slot.verdict == DIFFERS and norm < most and _is_rounding(slot, known)
        }
        if not small:
            return slots
        self._rounding.update(content_key(slot.a) for slot in slots if slot.place in small)
        return [slot._replace(verdict=NEAR_ZERO) if slot.place in small else slot for slot in slots]

    def _part(self, name: str, word: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any) -> list[Slot]:
        if a == b and self._refine is None:
            return [_equal(sys.intern(word + key), is_input, leaf) for key, leaf in leaves(a)]
        is_usual = type(a) is list and type(b) is list and len(a) == len(b) <= len(_PLACES)
        if is_usual and all(map(is_tensor, a)) and all(map(is_tensor, b)):
            return [
                self._tensors(name, sys.intern(word + key), parts, is_input, left, right, floor)
                for key, left, right in zip(_PLACES, a, b)
            ]
        return [
            self._slot(name, sys.intern(word + key), parts, is_input, left, right, floor)
            for key, left, right in _together(leaves(a), leaves(b))
        ]

    def _slot(self, name: str, place: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any) -> Slot:
        tensor_a, tensor_b = is_tensor(a), is_tensor(b)
        if not tensor_a or not tensor_b:
            if self._turned is not None and not is_told(parts, place, plain(a), plain(b)):
                return Slot(place, is_input, a, b, UNKNOWN, UNKNOWN_VALUE if tensor_a or tensor_b else "")
            if tensor_a or tensor_b:
                if "not_combined" in (a if tensor_a else b):
                    return Slot(place, is_input, a, b, UNKNOWN, NOT_COMBINED)
                return Slot(place, is_input, a, b, APART, ONE_SIDE)
            return Slot(place, is_input, a, b, UNKNOWN, "" if plain(a) == plain(b) else "argument")
        return self._tensors(name, place, parts, is_input, a, b, floor)

    def _tensors(self, name: str, place: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any) -> Slot:
        if "unwritten" in a or "unwritten" in b or (not is_input and is_unwritten(parts, place)):
            return Slot(place, is_input, a, b, UNKNOWN, UNKNOWN_VALUE)
        if "not_combined" in a or "not_combined" in b:
            return Slot(place, is_input, a, b, UNKNOWN, NOT_COMBINED)
        if self._turned is not None and may_be_transposed(parts, place, a, b):
            return self._weights(self._turned, name, place, is_input, a, b, floor)
        shape_a, shape_b = a.get("shape"), b.get("shape")
        if self._turned is not None and parts.kind == API and parts.direction == BACKWARD and not is_input:
            return self._gradients(name, place, a, b, floor)
        if shape_a != shape_b and element_count(shape_a) != element_count(shape_b):
            return Slot(place, is_input, a, b, APART, SHAPE)
        found = self._distance(a, b)
        if self._refine is not None and found is not SAME_BITS:
            found = self._refine(a, b, found)
        return Slot(place, is_input, a, b, found, self._verdict(name, place, a, b, found, floor))

    def _distance(self, a: Any, b: Any) -> Distance:
        """Return the distance that two records tell; equal records of a dump are one object, which the dump keeps."""
        key = id(a), id(b)
        found = self._distances.get(key)
        if found is None:
            found = self._distances[key] = (_from_crc(a, b) if "md5" in a else None) or distance(a, b)
        return found

    def _weights(self, turned: Refine, name: str, place: str, is_input: bool, a: Any, b: Any, floor: Any) -> Slot:
        """Return the verdict on two weights of which one may be the other's transpose."""
        straight = _from_crc(a, b) or distance(a, b)
        if a["shape"] == b["shape"]:
            if self._refine is not None and straight is not SAME_BITS:
                straight = self._refine(a, b, straight)
            verdict = self._verdict(name, place, a, b, straight, floor)
            if verdict not in HARD:
                return Slot(place, is_input, a, b, straight, verdict)
        found = turned(a, b, straight)
        verdict = self._verdict(name, place, a, b, found, floor)
        is_turned = verdict not in HARD and verdict != UNKNOWN_VALUE and is_certain(a, found)
        return Slot(place, is_input, a, b, found, TRANSPOSED if is_turned else verdict)

    def _gradients(self, name: str, place: str, a: Any, b: Any, floor: Any) -> Slot:
        """Return the verdict on two gradients of inputs of an API.

        msprobe for PyTorch records those of the last node that the API leaves in the graph, perhaps of a part of it.
        """
        if a.get("shape") != b.get("shape"):
            return Slot(place, False, a, b, UNKNOWN, UNKNOWN_VALUE)
        found = distance(a, b)
        verdict = self._verdict(name, place, a, b, found, floor)
        known = verdict not in HARD
        return Slot(place, False, a, b, found if known else UNKNOWN, verdict if known else UNKNOWN_VALUE)

    def _verdict(self, name: str, place: str, a: Any, b: Any, found: Distance, floor: Any) -> str:
        if found.rel_l2 is None:
            return UNKNOWN_VALUE
        dtype_a, dtype_b = a.get("dtype"), b.get("dtype")
        other_bits = not found.exact and dtype_a == dtype_b and bool(a.get("md5") and b.get("md5"))
        if found.rel_l2 == 0.0:
            return BITS if found.exact else OTHER_BITS if other_bits else NUMBERS_EQUAL
        tolerance = of_dtype(dtype_a)
        if dtype_a != dtype_b or floor is not _NO_FLOOR:
            tolerance = max(tolerance, of_dtype(dtype_b), min(floor))
        if self._tolerances.is_plain:
            agrees = found.rel_l2 <= tolerance * self._tolerances.factor
        else:
            agrees = self._tolerances.agrees(f"{name}.{place}", found, tolerance)
        return DIFFERS if not agrees else OTHER_BITS if other_bits else CLOSE


#: two tensors with one CRC-32
SAME_BITS = Distance(0.0, 0.0, True)


def _equal(place: str, is_input: bool, leaf: Any) -> Slot:
    if not is_tensor(leaf):
        return Slot(place, is_input, leaf, leaf, UNKNOWN, "")
    if leaf.get("md5"):
        return Slot(place, is_input, leaf, leaf, SAME_BITS, BITS)
    if leaf.get("Norm") is None and leaf.get("Max") is None:
        return Slot(place, is_input, leaf, leaf, UNKNOWN, UNKNOWN_VALUE)
    return Slot(place, is_input, leaf, leaf, SAME, NUMBERS_EQUAL)


def _from_crc(a: Any, b: Any) -> Distance | None:
    """Return a distance of zero where the CRC-32 of two arrays are equal; else None."""
    if a.get("md5") and a.get("md5") == b.get("md5") and a.get("dtype") == b.get("dtype"):
        return SAME_BITS
    return None


def _together(a: list[Leaf], b: list[Leaf]) -> list[tuple[str, Any, Any]]:
    """Return the values of two parts of entries by their keys, None for one that is missing."""
    right = dict(b)
    found = [(key, leaf, right.pop(key, None)) for key, leaf in a]
    return found + [(key, None, leaf) for key, leaf in right.items()]


def _is_rounding(slot: Slot, known: list[tuple[float, Slot]]) -> bool:
    """Return whether two tensors are so small beside a larger one of their call that their difference is rounding.

    A sum of n numbers that should be zero is as large as their rounding.
    It is larger by the root of n than the rounding of one number.
    In norms the root of n falls out.
    """
    left, right, distance_known = slot.a.get("Norm"), slot.b.get("Norm"), slot.distance.rel_l2
    tolerance = max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))
    count = element_count(slot.a.get("shape"))
    if type(right) is not float or distance_known is None or not tolerance or count is None:
        return False
    larger = max(left, right)
    return any(
        larger < _SMALL * norm and distance_known * larger <= tolerance * norm
        and of_dtype(other.a.get("dtype")) > 0.0 and (element_count(other.a.get("shape")) or 0) >= count
        for norm, other in known
    )  # fmt: skip


def _same_forms(slots: list[Slot]) -> list[Slot]:
    """Return the places of a forward call; an input that is a tensor on one side only is harmless if no output differs.

    ``x / 2.0`` and ``x / ops.full([], 2.0)`` are one thing, and so are no weight and a weight of ones.
    """
    if ONE_SIDE not in [slot.verdict for slot in slots if slot.is_input]:
        return slots
    outputs = [slot.verdict for slot in slots if not slot.is_input]
    if not outputs or any(verdict in HARD or verdict == UNKNOWN_VALUE for verdict in outputs):
        return slots
    return [
        slot._replace(verdict="argument", distance=UNKNOWN) if slot.is_input and slot.verdict == ONE_SIDE else slot
        for slot in slots
    ]


def _gap(slot: Slot) -> float:
    """Return the norm of the difference of two tensors, as far as it is known; 0.0 where nothing is known."""
    left, right, relative = real(slot.a.get("Norm")), real(slot.b.get("Norm")), slot.distance.rel_l2
    if left is None or right is None or relative is None or not relative * max(left, right) < _HUGE:
        return 0.0
    return relative * max(left, right)


def _is_carried(slot: Slot, given: list[tuple[float, int | None]]) -> bool:
    """Return whether an output differs by no more than a sum over an input carries: the root of the count of terms."""
    gap, count = _gap(slot), element_count(slot.a.get("shape"))
    if not gap or not count:
        return False
    return any(gap <= _GROWN * own * max((size or 0) / count, 1.0) ** 0.5 for own, size in given)


def is_unwritten(parts: EntryName, place: str) -> bool:
    """Return whether a tensor is memory as it was: of ``empty``, or a further output of BatchNorm.

    >>> from probe.reading.dumps.entry_name import parse
    >>> name = parse("Primitive.bn_train.BatchNorm.0.forward")
    >>> is_unwritten(name, "output.1"), is_unwritten(name, "output.0")
    (True, False)
    """
    if parts.direction != FORWARD or parts.kind == CELL or not place.startswith("output."):
        return False
    written = written_outputs(parts.key)
    number = place.split(".", 2)[1]
    return written is not None and not (number.isdigit() and int(number) < written)
