# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares two paired entries: each tensor gets a distance and a verdict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from probe.naming import written_outputs
from probe.reading.compare.distances.distance import APART, SAME, UNKNOWN, Distance, distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.foreign import is_certain, is_noise, is_told, may_be_transposed
from probe.reading.compare.judging.rounding import Rounding
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict, is_state
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.entry_view import OUTPUTS, WORDS
from probe.reading.dumps.values import element_count, is_tensor, leaves, plain

_FURTHER = {"model_parameters": "model_parameters", "attributes": "attributes"}
#: key of an entry -> how places in it begin
_PARTS = {key: f"{word}." for key, word in {**WORDS, **_FURTHER}.items()}
#: keys that other recorders, older dumps and merged shards lack: where one entry has none, nothing is known
_OPTIONAL = frozenset(("attributes", "model_parameters"))
NO_FLOOR = (0.0, 0.0)
#: words stand behind numbers of so many digits
_LONG = 99
_PLACES = tuple(map(str, range(64)))
#: two tensors with one CRC-32
SAME_BITS = Distance(0.0, 0.0, True)
#: finds the distance of two tensors from their arrays: (record of A, record of B, from statistics) -> distance
Refine = Callable[[Any, Any, Distance], Distance]
#: makes a Slot in half of the time
_new: Callable[..., Slot] = tuple.__new__


class _Call(NamedTuple):
    name: str
    parts: EntryName
    floor: tuple[float, float]  # no tolerance is below the lesser


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
        call = _Call(name, parts, floor)
        if isinstance(a, dict) and "type" in a:
            slots = self._part(call, "", False, [a], [b])
        elif isinstance(a, dict) and isinstance(b, dict) and parts.kind != GRADIENT:
            slots = self._entry(call, a, b)
        else:
            slots = self._part(call, "", False, a, b)
        return self._eased(parts, slots)

    def _entry(self, call: _Call, a: dict[str, Any], b: dict[str, Any]) -> list[Slot]:
        slots: list[Slot] = []
        is_unfinished = _is_unfinished(a) or _is_unfinished(b)
        for key in a if a.keys() == b.keys() else _parts_of(a, b):
            word = _PARTS.get(key)
            if word is None or (key in _OPTIONAL and (key in a) != (key in b)):
                continue
            is_input = key not in OUTPUTS
            if is_input or not is_unfinished:
                slots += self._part(call, word, is_input, a.get(key), b.get(key))
        parameters = a.get("parameters")
        if type(parameters) is dict and any(map(is_state, parameters)):
            slots = [_as_output(slot) for slot in slots]
        if call.parts.direction != FORWARD:
            return slots
        return _same_forms(slots)

    def _eased(self, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call; gradients of two frameworks may differ more than other values."""
        if self._turned is None or parts.direction == FORWARD or self._tolerances.has_noise:
            return slots
        eased: list[Slot] = []
        for slot in slots:
            if slot.verdict == Verdict.DIFFERS and self._is_noise(slot):
                eased.append(slot._replace(verdict=Verdict.CLOSE))
            else:
                eased.append(slot)
        return eased

    def _is_noise(self, slot: Slot) -> bool:
        return is_noise(slot.a, slot.b, slot.distance, self._tolerances.factor)

    def follow(self, name: str, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call. A call turns rounding into rounding: its outputs are near zero too.

        A tensor that a rule of the user is for has the verdict of that rule; the others are judged as without it. It is
        asked for the calls in the order in which they ran.
        """
        tolerances = self._tolerances
        if not tolerances.is_plain:
            tolerances.note([f"{name}.{slot.place}" for slot in slots if is_tensor(slot.a)])
        if tolerances.has_noise and not tolerances.net:
            return slots
        if Verdict.DIFFERS not in [slot.verdict for slot in slots]:
            return slots
        after = self._rounding.follow(parts, slots)
        if tolerances.is_plain:
            return after
        for number, slot in enumerate(slots):
            if tolerances.is_ruled(f"{name}.{slot.place}"):
                after[number] = slot
        return after

    def _part(self, call: _Call, word: str, is_input: bool, a: Any, b: Any) -> list[Slot]:
        """Return the places in a part of two entries."""
        if a == b and self._refine is None:
            return [_equal(sys.intern(word + key), is_input, leaf) for key, leaf in leaves(a)]
        if _are_lists_of_tensors(a, b):
            return [
                self._tensors(call, sys.intern(word + key), is_input, left, right)
                for key, left, right in zip(_PLACES, a, b)
            ]
        leaves_a = dict(leaves(a))
        leaves_b = dict(leaves(b))
        keys = list(leaves_a)
        if keys != list(leaves_b):  # the order must not tell which side is A
            keys = sorted({**leaves_a, **leaves_b}, key=_by_words)
        slots: list[Slot] = []
        for key in keys:
            place = sys.intern(word + key)
            left = leaves_a.get(key)  # None for one that is missing
            slots.append(self._slot(call, place, is_input, left, leaves_b.get(key)))
        return slots

    def _slot(self, call: _Call, place: str, is_input: bool, a: Any, b: Any) -> Slot:
        """Return the place of two values, each of which may be a tensor, a plain one or None."""
        has_a = is_tensor(a)
        has_b = is_tensor(b)
        if has_a and has_b:
            return self._tensors(call, place, is_input, a, b)
        plain_a = plain(a)
        plain_b = plain(b)
        apart = UNKNOWN
        if self._turned is not None and not is_told(call.parts, place, plain_a, plain_b):
            verdict = Verdict.UNKNOWN if has_a or has_b else ""
        elif not has_a and not has_b:
            verdict = "" if plain_a == plain_b else Verdict.ARGUMENT
        elif "not_combined" in (a if has_a else b):
            verdict = Verdict.NOT_COMBINED
        else:
            verdict = Verdict.ONE_SIDE
            apart = APART
        return Slot(place, is_input, a, b, apart, verdict)

    def _tensors(self, call: _Call, place: str, is_input: bool, a: Any, b: Any) -> Slot:
        """Return the place of two tensors."""
        parts = call.parts
        if "unwritten" in a or "unwritten" in b or (not is_input and is_unwritten(parts, place)):
            return Slot(place, is_input, a, b, UNKNOWN, Verdict.UNKNOWN)
        if "not_combined" in a or "not_combined" in b:
            return Slot(place, is_input, a, b, UNKNOWN, Verdict.NOT_COMBINED)
        if self._turned is not None:
            if may_be_transposed(parts, place, a, b):
                return self._weights(self._turned, call, place, is_input, a, b)
            if parts.kind == API and parts.direction == BACKWARD and not is_input:
                return self._gradients(call, place, a, b)
        shape_a = a.get("shape")
        shape_b = b.get("shape")
        if shape_a != shape_b and element_count(shape_a) != element_count(shape_b):
            return Slot(place, is_input, a, b, APART, Verdict.SHAPE)
        # equal records of a dump are one object, which the dump keeps
        key = (id(a), id(b))
        apart = self._distances.get(key)
        if apart is None:
            apart = _by_records(a, b)
            self._distances[key] = apart
        if self._refine is not None and apart is not SAME_BITS:
            apart = self._refine(a, b, apart)
        verdict = self._verdict(call, place, a, b, apart)
        return _new(Slot, (place, is_input, a, b, apart, verdict))

    def _weights(
        self, turned: Refine, call: _Call, place: str, is_input: bool, a: Any, b: Any
    ) -> Slot:
        """Return the verdict on two weights of which one may be the other's transpose."""
        straight = _by_records(a, b)
        if a["shape"] == b["shape"]:
            if self._refine is not None and straight is not SAME_BITS:
                straight = self._refine(a, b, straight)
            verdict = self._verdict(call, place, a, b, straight)
            if verdict not in HARD:
                return Slot(place, is_input, a, b, straight, verdict)
        found = turned(a, b, straight)
        verdict = self._verdict(call, place, a, b, found)
        if verdict not in HARD and verdict != Verdict.UNKNOWN and is_certain(a, found):
            verdict = Verdict.TRANSPOSED
        return Slot(place, is_input, a, b, found, verdict)

    def _gradients(self, call: _Call, place: str, a: Any, b: Any) -> Slot:
        """Return the verdict on two gradients of inputs of an API."""
        if a.get("shape") == b.get("shape"):
            found = distance(a, b)
            verdict = self._verdict(call, place, a, b, found)
            # msprobe for PyTorch records those of the last node that the API leaves in the graph
            if verdict not in HARD:
                return Slot(place, False, a, b, found, verdict)
        return Slot(place, False, a, b, UNKNOWN, Verdict.UNKNOWN)

    def _verdict(self, call: _Call, place: str, a: Any, b: Any, found: Distance) -> str:
        if found.rel_l2 is None:
            return Verdict.UNKNOWN
        dtype_a = a.get("dtype")
        dtype_b = b.get("dtype")
        is_one_dtype = dtype_a == dtype_b
        other_bits = not found.exact and is_one_dtype and bool(a.get("md5") and b.get("md5"))
        if found.rel_l2 == 0.0:
            if found.exact:
                return Verdict.BITS
            return Verdict.OTHER_BITS if other_bits else Verdict.NUMBERS_EQUAL
        tolerance = of_dtype(dtype_a)
        floor = call.floor
        if not is_one_dtype or floor is not NO_FLOOR:
            tolerance = max(tolerance, of_dtype(dtype_b), min(floor))
        if self._tolerances.is_plain:
            agrees = found.rel_l2 <= tolerance * self._tolerances.factor
        else:
            name = f"{call.name}.{place}"
            agrees = self._tolerances.agrees(name, found, tolerance, is_one_dtype)
        if not agrees:
            return Verdict.DIFFERS
        return Verdict.OTHER_BITS if other_bits else Verdict.CLOSE


def _parts_of(a: dict[str, Any], b: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of two entries that do not have the same ones."""
    yield from (key for key in _PARTS if key in a or key in b)


def _by_words(place: str) -> list[tuple[int, str]]:
    """Return a key that puts places in order, numbers by their size.

    >>> sorted(["10", "2", "b.0", "a"], key=_by_words)
    ['2', '10', 'a', 'b.0']
    """
    return [(len(word) if word.isdigit() else _LONG, word) for word in place.split(".")]


def _is_unfinished(entry: dict[str, Any]) -> bool:
    return "pending" in entry or "error" in entry


def _as_output(slot: Slot) -> Slot:
    """Return a place; a parameter that the forward changes is no input."""
    return slot._replace(is_input=False) if is_state(slot.place) else slot


def _are_lists_of_tensors(a: Any, b: Any) -> bool:
    """Return whether two parts of entries are usual ones: lists of as many tensors."""
    if type(a) is not list or type(b) is not list:
        return False
    if len(a) != len(b) or len(b) > len(_PLACES):
        return False
    return all(map(is_tensor, a)) and all(map(is_tensor, b))


def _equal(place: str, is_input: bool, leaf: Any) -> Slot:
    if not is_tensor(leaf):
        return Slot(place, is_input, leaf, leaf, UNKNOWN, "")
    if leaf.get("md5"):
        return Slot(place, is_input, leaf, leaf, SAME_BITS, Verdict.BITS)
    if leaf.get("Norm") is None and leaf.get("Max") is None:
        return Slot(place, is_input, leaf, leaf, UNKNOWN, Verdict.UNKNOWN)
    return Slot(place, is_input, leaf, leaf, SAME, Verdict.NUMBERS_EQUAL)


def _by_records(a: Any, b: Any) -> Distance:
    """Return the distance by the CRC-32 of two arrays where they are equal, else by the statistics."""
    crc = a.get("md5")
    if crc and crc == b.get("md5") and a.get("dtype") == b.get("dtype"):
        return SAME_BITS
    return distance(a, b)


def _same_forms(slots: list[Slot]) -> list[Slot]:
    """Return the places of a forward; an input that is a tensor on one side is harmless if no output differs."""
    if not any(map(_is_one_sided_input, slots)):
        return slots
    # x / 2.0 and x / ops.full([], 2.0) are one thing, and so are no weight and a weight of ones
    outputs = [slot.verdict for slot in slots if not slot.is_input]
    if not outputs or Verdict.UNKNOWN in outputs or not HARD.isdisjoint(outputs):
        return slots
    return [_as_argument(slot) if _is_one_sided_input(slot) else slot for slot in slots]


def _is_one_sided_input(slot: Slot) -> bool:
    return slot.is_input and slot.verdict == Verdict.ONE_SIDE


def _as_argument(slot: Slot) -> Slot:
    return slot._replace(verdict=Verdict.ARGUMENT, distance=UNKNOWN)


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
