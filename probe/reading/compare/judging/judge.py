# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares two paired entries: each tensor gets a distance and a verdict.

Two frameworks have some places in other ways: transposed weights, and values on one side only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from probe.naming import written_outputs
from probe.reading.compare.distances.distance import APART, SAME, UNKNOWN, Distance, distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.verdicts import HARD, Rounding, Slot, Verdict, is_state
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.entry_view import OUTPUTS, WORDS
from probe.reading.dumps.values import element_count, is_tensor, leaves, plain

#: key of an entry -> how places in it begin
_PARTS = {**WORDS, "model_parameters": "model_parameters", "attributes": "attributes"}
#: keys that other recorders, older dumps and merged shards lack: where one entry has none, nothing is known
_OPTIONAL = frozenset(("attributes", "model_parameters"))
NO_FLOOR = (0.0, 0.0)
_PLACES = tuple(map(str, range(64)))


#: finds the distance of two tensors from their arrays: (record of A, record of B, from statistics) -> distance
Refine = Callable[[Any, Any, Distance], Distance]


class Judge:
    """Compares entries.

    ``refine`` looks at arrays; it is None where there are none. ``turned`` finds the distance of A's transpose from B;
    it is None where both dumps are of one framework.
    """

    def __init__(
        self, tolerances: Tolerances, refine: Refine | None = None, turned: Refine | None = None
    ) -> None:
        self._tolerances = tolerances
        self._refine = refine
        self._turned = turned
        self._rounding = Rounding()
        self._distances: dict[tuple[int, int], Distance] = {}

    def slots(
        self, name: str, parts: EntryName, a: Any, b: Any, floor: tuple[float, float] = NO_FLOOR
    ) -> list[Slot]:
        """Return the places of two entries with their verdicts; no tolerance is below the lesser ``floor``."""
        if (
            not isinstance(a, dict)
            or not isinstance(b, dict)
            or parts.kind == GRADIENT
            or "type" in a
        ):
            if isinstance(a, dict) and "type" in a:
                a, b = [a], [b]
            return self._eased(parts, self._part(name, "", parts, False, a, b, floor))
        found: list[Slot] = []
        unfinished = "pending" in a or "pending" in b or "error" in a or "error" in b
        for key in a if a.keys() == b.keys() else {**a, **b}:
            if key in _PARTS and not (key in _OPTIONAL and (key in a) != (key in b)):
                is_input = key not in OUTPUTS
                if is_input or not unfinished:
                    found += self._part(
                        name, f"{_PARTS[key]}.", parts, is_input, a.get(key), b.get(key), floor
                    )
        if type(a.get("parameters")) is dict and any(map(is_state, a["parameters"])):
            found = [
                slot._replace(is_input=False) if is_state(slot.place) else slot for slot in found
            ]
        if parts.direction == FORWARD:
            found = _same_forms(found)
        return self._eased(parts, found)

    def _eased(self, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call; gradients of two frameworks may differ more than other values."""
        if self._turned is None or parts.direction == FORWARD or self._tolerances.has_noise:
            return slots
        return [
            slot._replace(verdict=Verdict.CLOSE)
            if slot.verdict == Verdict.DIFFERS
            and is_noise(slot.a, slot.b, slot.distance, self._tolerances.factor)
            else slot
            for slot in slots
        ]

    def follow(self, name: str, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call. A call turns rounding into rounding: its outputs are near zero too.

        A tensor that a rule of the user is for has the verdict of that rule; the others are judged as without it. It is
        asked for the calls in the order in which they ran.
        """
        tolerances = self._tolerances
        if not tolerances.is_plain:
            tolerances.note([f"{name}.{slot.place}" for slot in slots if is_tensor(slot.a)])
        if (tolerances.has_noise and not tolerances.net) or Verdict.DIFFERS not in [
            slot.verdict for slot in slots
        ]:
            return slots
        after = self._rounding.follow(parts, slots)
        if tolerances.is_plain:
            return after
        return [
            old if tolerances.is_ruled(f"{name}.{old.place}") else new
            for old, new in zip(slots, after)
        ]

    def _part(
        self, name: str, word: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any
    ) -> list[Slot]:
        if a == b and self._refine is None:
            return [_equal(sys.intern(word + key), is_input, leaf) for key, leaf in leaves(a)]
        is_usual = type(a) is list and type(b) is list and len(a) == len(b) <= len(_PLACES)
        if is_usual and all(map(is_tensor, a)) and all(map(is_tensor, b)):
            judge, found = self._tensors, [*zip(_PLACES, a, b)]
        else:
            judge, rest = self._slot, dict(leaves(b))
            found = [(key, leaf, rest.pop(key, None)) for key, leaf in leaves(a)]
            found += [
                (key, None, leaf) for key, leaf in rest.items()
            ]  # None for one that is missing
        return [
            judge(name, sys.intern(word + key), parts, is_input, left, right, floor)
            for key, left, right in found
        ]

    def _slot(
        self, name: str, place: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any
    ) -> Slot:
        tensor_a, tensor_b = is_tensor(a), is_tensor(b)
        if not tensor_a or not tensor_b:
            if self._turned is not None and not is_told(parts, place, plain(a), plain(b)):
                return Slot(
                    place, is_input, a, b, UNKNOWN, Verdict.UNKNOWN if tensor_a or tensor_b else ""
                )
            if tensor_a or tensor_b:
                if "not_combined" in (a if tensor_a else b):
                    return Slot(place, is_input, a, b, UNKNOWN, Verdict.NOT_COMBINED)
                return Slot(place, is_input, a, b, APART, Verdict.ONE_SIDE)
            return Slot(
                place, is_input, a, b, UNKNOWN, "" if plain(a) == plain(b) else Verdict.ARGUMENT
            )
        return self._tensors(name, place, parts, is_input, a, b, floor)

    def _tensors(
        self, name: str, place: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any
    ) -> Slot:
        if "unwritten" in a or "unwritten" in b or (not is_input and is_unwritten(parts, place)):
            return Slot(place, is_input, a, b, UNKNOWN, Verdict.UNKNOWN)
        if "not_combined" in a or "not_combined" in b:
            return Slot(place, is_input, a, b, UNKNOWN, Verdict.NOT_COMBINED)
        if self._turned is not None and may_be_transposed(parts, place, a, b):
            return self._weights(self._turned, name, place, is_input, a, b, floor)
        shape_a, shape_b = a.get("shape"), b.get("shape")
        if (
            self._turned is not None
            and parts.kind == API
            and parts.direction == BACKWARD
            and not is_input
        ):
            return self._gradients(name, place, a, b, floor)
        if shape_a != shape_b and element_count(shape_a) != element_count(shape_b):
            return Slot(place, is_input, a, b, APART, Verdict.SHAPE)
        key = id(a), id(b)  # equal records of a dump are one object, which the dump keeps
        found = self._distances.get(key)
        if found is None:
            found = self._distances[key] = (_from_crc(a, b) if "md5" in a else None) or distance(
                a, b
            )
        if self._refine is not None and found is not SAME_BITS:
            found = self._refine(a, b, found)
        return _new(
            Slot, (place, is_input, a, b, found, self._verdict(name, place, a, b, found, floor))
        )

    def _weights(
        self, turned: Refine, name: str, place: str, is_input: bool, a: Any, b: Any, floor: Any
    ) -> Slot:
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
        is_turned = verdict not in HARD and verdict != Verdict.UNKNOWN and is_certain(a, found)
        return Slot(place, is_input, a, b, found, Verdict.TRANSPOSED if is_turned else verdict)

    def _gradients(self, name: str, place: str, a: Any, b: Any, floor: Any) -> Slot:
        """Return the verdict on two gradients of inputs of an API."""
        if a.get("shape") != b.get("shape"):
            return Slot(place, False, a, b, UNKNOWN, Verdict.UNKNOWN)
        found = distance(a, b)
        verdict = self._verdict(name, place, a, b, found, floor)
        # msprobe for PyTorch records those of the last node that the API leaves in the graph
        known = verdict not in HARD
        return Slot(
            place, False, a, b, found if known else UNKNOWN, verdict if known else Verdict.UNKNOWN
        )

    def _verdict(self, name: str, place: str, a: Any, b: Any, found: Distance, floor: Any) -> str:
        if found.rel_l2 is None:
            return Verdict.UNKNOWN
        dtype_a, dtype_b = a.get("dtype"), b.get("dtype")
        other_bits = not found.exact and dtype_a == dtype_b and bool(a.get("md5") and b.get("md5"))
        if found.rel_l2 == 0.0:
            return (
                Verdict.BITS
                if found.exact
                else Verdict.OTHER_BITS
                if other_bits
                else Verdict.NUMBERS_EQUAL
            )
        tolerance = of_dtype(dtype_a)
        if dtype_a != dtype_b or floor is not NO_FLOOR:
            tolerance = max(tolerance, of_dtype(dtype_b), min(floor))
        if self._tolerances.is_plain:
            agrees = found.rel_l2 <= tolerance * self._tolerances.factor
        else:
            agrees = self._tolerances.agrees(
                f"{name}.{place}", found, tolerance, dtype_a == dtype_b
            )
        return (
            Verdict.DIFFERS if not agrees else Verdict.OTHER_BITS if other_bits else Verdict.CLOSE
        )


#: makes a Slot in half of the time
_new: Callable[..., Slot] = tuple.__new__
#: two tensors with one CRC-32
SAME_BITS = Distance(0.0, 0.0, True)


def _equal(place: str, is_input: bool, leaf: Any) -> Slot:
    if not is_tensor(leaf):
        return Slot(place, is_input, leaf, leaf, UNKNOWN, "")
    if leaf.get("md5"):
        return Slot(place, is_input, leaf, leaf, SAME_BITS, Verdict.BITS)
    if leaf.get("Norm") is None and leaf.get("Max") is None:
        return Slot(place, is_input, leaf, leaf, UNKNOWN, Verdict.UNKNOWN)
    return Slot(place, is_input, leaf, leaf, SAME, Verdict.NUMBERS_EQUAL)


def _from_crc(a: Any, b: Any) -> Distance | None:
    """Return a distance of zero where the CRC-32 of two arrays are equal; else None."""
    if a.get("md5") and a.get("md5") == b.get("md5") and a.get("dtype") == b.get("dtype"):
        return SAME_BITS
    return None


def _same_forms(slots: list[Slot]) -> list[Slot]:
    """Return the places of a forward; an input that is a tensor on one side is harmless if no output differs."""
    if Verdict.ONE_SIDE not in [slot.verdict for slot in slots if slot.is_input]:
        return slots
    # x / 2.0 and x / ops.full([], 2.0) are one thing, and so are no weight and a weight of ones
    outputs = [slot.verdict for slot in slots if not slot.is_input]
    if not outputs or any(verdict in HARD or verdict == Verdict.UNKNOWN for verdict in outputs):
        return slots
    return [
        slot._replace(verdict=Verdict.ARGUMENT, distance=UNKNOWN)
        if slot.is_input and slot.verdict == Verdict.ONE_SIDE
        else slot
        for slot in slots
    ]


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


#: gradients are sums over the batch, which the frameworks add in other orders: so many tolerances are no difference
_GRADIENTS = 10.0


def is_noise(a: Any, b: Any, found: Distance, factor: float) -> bool:
    """Return whether two gradients differ by no more than sums in another order; ``factor`` is of all tolerances."""
    if not is_tensor(a) or not is_tensor(b) or found.rel_l2 is None:
        return False
    tolerance = max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))
    return found.rel_l2 <= _GRADIENTS * tolerance * factor


def may_be_transposed(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether two tensors are parameters, or gradients of them, whose shapes are those of transposes.

    >>> from probe.reading.dumps.entry_name import parse
    >>> name = parse("Cell.fc.Dense.forward.0")
    >>> may_be_transposed(name, "parameters.weight", {"shape": [2, 3]}, {"shape": [3, 2]})
    True
    """
    if parts.kind != GRADIENT and not place.startswith("parameters."):
        return False
    left, right = a.get("shape"), b.get("shape")
    return type(left) is list and type(right) is list and len(left) == 2 and left == right[::-1]


def is_certain(a: Any, found: Distance) -> bool:
    """Return whether the shapes prove that one tensor is the other's transpose, if their numbers agree."""
    # a square one may be equal to the other as it stands: arrays tell the two apart, statistics do not
    return found.exact or a["shape"][0] != a["shape"][1]


def is_told(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether a difference of two values that are no two tensors tells anything over two frameworks.

    Signatures of APIs differ, and MindSpore has parameters where PyTorch has buffers. Numbers at one place do tell.

    >>> from probe.reading.dumps.entry_name import parse
    >>> [is_told(parse("Tensor.__mul__.0.forward"), "input.1", 0.25, b) for b in (0.5, None)]
    [True, False]
    """
    if type(a) in (int, float) and type(b) in (int, float):
        return True
    return (
        parts.kind == CELL
        and not place.startswith("parameters.")
        and (is_tensor(a) or is_tensor(b))
    )
