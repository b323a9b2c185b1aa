# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Compares what stands in two paired entries: each tensor gets a distance and a verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from probe.reading.compare.bounds import APART, SAME, UNKNOWN, Distance, distance
from probe.reading.compare.tolerance import Tolerances, of_dtype
from probe.reading.entry_name import CELL, FORWARD, GRADIENT, EntryName
from probe.reading.flow import content_key
from probe.reading.values import Leaf, element_count, is_tensor, leaves, plain

#: verdicts on a tensor
BITS, NUMBERS_EQUAL, CLOSE, DIFFERS, UNKNOWN_VALUE, ONE_SIDE, SHAPE, OTHER_BITS, NEAR_ZERO = (
    "same", "equal numbers", "close", "differs", "unknown", "one side", "shape", "other bits", "near zero"
)  # fmt: skip
HARD = frozenset((DIFFERS, ONE_SIDE, SHAPE))
#: (key of an entry, word in names, whether it is what the call was given)
_PARTS = (
    ("input_args", "input", True),
    ("input_kwargs", "kwargs", True),
    ("input", "input", True),
    ("grad_output", "input", True),
    ("parameters", "parameters", True),
    ("output", "output", False),
    ("output_kwargs", "output_kwargs", False),
    ("grad_input", "output", False),
)
#: calls that give memory as it was, or whose kernel on CPU leaves its further outputs unwritten
_EMPTY = re.compile(r"^(new_)?empty(_like|_strided)?$")
_SMALL = 1e-3


class Slot(NamedTuple):
    """One place of a call in A and in B.

    Attributes:
        place: where: "input.0", "output.1".
        is_input: whether the call was given it.
        a: the value in A: a record, a plain value, or None.
        b: the value in B.
        distance: how far apart two tensors are.
        verdict: "same" (bits), "equal numbers", "other bits" (equal numbers, another CRC-32), "close", "near zero" (both
            are the rounding of a sum that is zero), "differs", "shape", "one side" or "unknown"; "" for plain values
            that are equal, "argument" for those that are not.
    """

    place: str
    is_input: bool
    a: Any
    b: Any
    distance: Distance
    verdict: str


#: finds the distance of two tensors from their arrays: (record of A, record of B, from statistics) -> distance
Refine = Callable[[Any, Any, Distance], Distance]


class Judge:
    """Compares entries.

    Args:
        tolerances: what is still agreement.
        refine: looks at arrays; None where there are none.
    """

    def __init__(self, tolerances: Tolerances, refine: Refine | None = None) -> None:
        self._tolerances = tolerances
        self._refine = refine
        self._rounding: set[Any] = set()

    def slots(self, name: str, parts: EntryName, a: Any, b: Any, floor: tuple[float, float] = (0.0, 0.0)) -> list[Slot]:
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
            return self._part(name, "", parts, False, a, b, floor, a)
        found: list[Slot] = []
        unfinished = any(key in entry for key in ("pending", "error") for entry in (a, b))
        for key, word, is_input in _PARTS:
            left, right = a.get(key), b.get(key)
            if (left is None and right is None) or (unfinished and not is_input):
                continue
            found += self._part(name, f"{word}.", parts, is_input, left, right, floor, a)
        return found

    def follow(self, slots: list[Slot]) -> list[Slot]:
        """Return the places with what a call makes of rounding, which is rounding too.

        Args:
            slots: the places of a call, in the order in which the calls ran.
        """
        for slot in slots:
            if slot.verdict == NEAR_ZERO:
                self._rounding.add(content_key(slot.a))
        if not self._rounding or not any(slot.verdict == DIFFERS for slot in slots):
            return slots
        made = [
            slot._replace(verdict=NEAR_ZERO)
            if slot.verdict == DIFFERS and slot.is_input and content_key(slot.a) in self._rounding
            else slot
            for slot in slots
        ]
        given = [slot.verdict for slot in made if slot.is_input and is_tensor(slot.a)]
        if given and all(verdict == NEAR_ZERO for verdict in given):
            made = [slot._replace(verdict=NEAR_ZERO) if slot.verdict == DIFFERS else slot for slot in made]
            self._rounding.update(content_key(slot.a) for slot in made if slot.verdict == NEAR_ZERO)
        return made

    def _part(
        self, name: str, word: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any, entry: Any
    ) -> list[Slot]:
        if a == b and self._refine is None:
            return [_equal(f"{word}{key}", is_input, leaf) for key, leaf in leaves(a)]
        return [
            self._slot(name, f"{word}{key}", parts, is_input, left, right, floor, entry)
            for key, left, right in _together(leaves(a), leaves(b))
        ]

    def _slot(
        self, name: str, place: str, parts: EntryName, is_input: bool, a: Any, b: Any, floor: Any, entry: Any
    ) -> Slot:
        tensor_a, tensor_b = is_tensor(a), is_tensor(b)
        if not tensor_a and not tensor_b:
            return Slot(place, is_input, a, b, UNKNOWN, "" if plain(a) == plain(b) else "argument")
        if not tensor_a or not tensor_b:
            return Slot(place, is_input, a, b, APART, ONE_SIDE)
        if is_unwritten(parts, place) or a.get("unwritten") or b.get("unwritten"):
            return Slot(place, is_input, a, b, UNKNOWN, UNKNOWN_VALUE)
        if a.get("shape") != b.get("shape") and element_count(a.get("shape")) != element_count(b.get("shape")):
            return Slot(place, is_input, a, b, APART, SHAPE)
        found = _from_crc(a, b) or distance(a, b)
        if self._refine is not None and found is not SAME_BITS:
            found = self._refine(a, b, found)
        return Slot(place, is_input, a, b, found, self._verdict(f"{name}.{place}", a, b, found, floor, entry))

    def _verdict(self, name: str, a: Any, b: Any, found: Distance, floor: Any, entry: Any) -> str:  # noqa: PLR0911
        if found.rel_l2 is None:
            return UNKNOWN_VALUE
        if found is SAME_BITS:
            return BITS
        if found.rel_l2 == 0.0:
            if found.exact:
                return BITS
            return OTHER_BITS if a.get("md5") and b.get("md5") and a.get("dtype") == b.get("dtype") else NUMBERS_EQUAL
        tolerance = max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")), min(floor))
        if self._tolerances.agrees(name, found, tolerance):
            return CLOSE
        if tolerance and self._tolerances.is_plain and _near_zero(a, b, found, tolerance, entry):
            return NEAR_ZERO
        return DIFFERS


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
    """Return what the CRC-32 of two arrays say: equal, or nothing (how far apart, the numbers tell)."""
    if a.get("md5") and a.get("md5") == b.get("md5") and a.get("dtype") == b.get("dtype"):
        return SAME_BITS
    return None


def _together(a: list[Leaf], b: list[Leaf]) -> list[tuple[str, Any, Any]]:
    if len(a) == len(b) and [key for key, _ in a] == [key for key, _ in b]:
        return [(key, left, right) for (key, left), (_, right) in zip(a, b)]
    right = dict(b)
    found = [(key, leaf, right.pop(key, None)) for key, leaf in a]
    return found + [(key, None, leaf) for key, leaf in b if key in right]


def _root_mean_square(record: Any) -> float | None:
    if type(record) is not dict:
        return None
    norm, count = record.get("Norm"), element_count(record.get("shape"))
    if type(norm) is not float or not count or not norm < 1e300 or not of_dtype(record.get("dtype")):
        return None
    return norm / count**0.5  # type: ignore[no-any-return]


def _near_zero(a: Any, b: Any, found: Distance, tolerance: float, entry: Any) -> bool:
    """Return whether two tensors are so small beside the others of their call that their difference is rounding.

    A sum of n numbers that should be zero is as large as their rounding: by the root of n larger than one number's.
    """
    left, right = _root_mean_square(a), _root_mean_square(b)
    if left is None or right is None or found.rel_l2 is None or not math.isfinite(found.rel_l2):
        return False
    larger, count = max(left, right), element_count(a.get("shape")) or 1
    for _, record in leaves(entry):
        root = _root_mean_square(record)
        if root is not None:
            scale = root * max(1.0, (element_count(record.get("shape")) or 1) / count) ** 0.5
            if larger < _SMALL * scale and found.rel_l2 * larger <= tolerance * scale:
                return True
    return False


def is_unwritten(parts: EntryName, place: str) -> bool:
    """Return whether a tensor is memory as it was: of ``empty``, or a further output of BatchNorm.

    >>> from probe.reading.entry_name import parse
    >>> name = parse("Primitive.bn_train.BatchNorm.0.forward")
    >>> is_unwritten(name, "output.1"), is_unwritten(name, "output.0")
    (True, False)
    """
    if parts.direction != FORWARD or not place.startswith("output"):
        return False
    if parts.kind != CELL and parts.api == "BatchNorm":
        return place != "output.0"
    return bool(_EMPTY.match(parts.api))


def other_text(slot: Slot) -> tuple[str, str]:
    """Return the two values of a place that holds no two tensors, as texts."""
    return _text(slot.a), _text(slot.b)


def _text(value: Any) -> str:
    if is_tensor(value):
        return f"{value.get('dtype')} {value.get('shape')}"
    text = repr(plain(value))
    return text if len(text) <= 60 else text[:57] + "..."
