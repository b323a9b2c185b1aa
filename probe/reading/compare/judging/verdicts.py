# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The verdicts on a tensor, the place of a call that has one, and the rounding of a sum that cancels.

Such a tensor may be any small number, and so may all that is made of it. It is near zero only where a call that adds
has made it, it is small beside the terms, and the difference is bounded by the tolerance of the terms. Its distance is
then by the size of the terms.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.dumps.entry_name import API, BACKWARD, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import element_count, is_tensor, plain, real


class Verdict:
    """The verdicts on a tensor. Plain values that are equal have none: ""."""

    BITS = "same"
    NUMBERS_EQUAL = "equal numbers"
    OTHER_BITS = "other bits"  # equal numbers or within the tolerance, another CRC-32
    CLOSE = "close"
    NEAR_ZERO = "near zero"  # both are the rounding of a sum that is zero
    DIFFERS = "differs"
    SHAPE = "shape"
    ONE_SIDE = "one side"
    UNKNOWN = "unknown"
    NOT_COMBINED = "not combined"  # the ranks of a layout do not tell the whole
    OTHER_BATCH = "other batch"  # one side divides the batch, and the gradients that enter the optimizer agree
    TRANSPOSED = "transposed"  # a weight is the transpose of the other framework's
    ARGUMENT = "argument"  # two plain values are not equal


HARD = frozenset((Verdict.DIFFERS, Verdict.ONE_SIDE, Verdict.SHAPE))
EQUAL = frozenset((Verdict.BITS, Verdict.NUMBERS_EQUAL))
#: differences within the tolerance
FAINT = frozenset((Verdict.CLOSE, Verdict.OTHER_BITS, Verdict.NEAR_ZERO))
#: parameters that the forward changes: they are recorded after it, as outputs are
_STATE = re.compile(r"(^|\.)(moving|running)_(mean|var(iance)?)$")


class Slot(NamedTuple):
    """One place of a call in A and in B."""

    place: str  # where: "input.0", "output.1"
    is_input: bool  # whether the call was given it
    a: Any  # the value in A: a record, a plain value, or None
    b: Any  # the value in B
    distance: Distance
    verdict: str  # a ``Verdict``


def sharpened(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call as they are judged if every difference counts."""
    return [
        slot._replace(verdict=Verdict.DIFFERS) if slot.verdict in FAINT else slot for slot in slots
    ]


def is_permuted(slot: Slot) -> bool:
    """Return whether two tensors have other bits, but the same greatest and least element: perhaps other places."""
    return slot.verdict == Verdict.OTHER_BITS and all(
        slot.a.get(key) == slot.b.get(key) for key in ("Max", "Min")
    )


@functools.lru_cache(4096)
def is_state(name: str) -> bool:
    """Return whether a parameter is one that the forward changes.

    >>> is_state("parameters.moving_mean"), is_state("gamma")
    (True, False)
    """
    return _STATE.search(name) is not None


def other_text(slot: Slot) -> tuple[str, str]:
    """Return the two values of a place that holds no two tensors, as texts: numbers with the digits that matter."""
    values = plain(slot.a), plain(slot.b)
    if all(type(value) in (int, float) for value in values):
        short = f"{values[0]:.6g}", f"{values[1]:.6g}"
        if short[0] != short[1]:
            return short
    return _text(slot.a), _text(slot.b)


def _text(value: Any) -> str:
    if is_tensor(value):
        return f"{value.get('dtype')} {value.get('shape')}"
    text = repr(plain(value))
    return text if len(text) <= 60 else text[:57] + "..."


_SMALL, _HUGE = 1e-3, 1e300
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
        self._known: dict[Any, _Rounding] = {}  # content in A -> how far apart

    def follow(self, parts: EntryName, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call, in the order in which the calls ran: rounding that differs is near zero."""
        if parts.kind != API or parts.direction == BACKWARD or _SUMS.fullmatch(parts.api):
            slots = self._without_carried(self._without_rounding(slots))
        return self._after_rounding(slots) if self._known else slots

    def _after_rounding(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a call: rounding stays it, and so is an output no farther apart than what went in."""
        made = []
        for slot in slots:
            known = (
                self._known.get(content_key(slot.a)) if slot.verdict == Verdict.DIFFERS else None
            )
            made.append(
                slot._replace(verdict=Verdict.NEAR_ZERO, distance=known.bounded) if known else slot
            )
        near = (slot for slot in made if slot.is_input and slot.verdict == Verdict.NEAR_ZERO)
        given = filter(None, (self._known.get(content_key(slot.a)) for slot in near))
        worst = max(given, key=lambda item: item.relative, default=None)
        if worst is None or any(slot.verdict in HARD for slot in made if slot.is_input):
            return made
        return [
            self._rounded(slot, worst.bounded)
            if slot.verdict == Verdict.DIFFERS
            and (slot.distance.rel_l2 or 0.0) <= _GROWN * worst.relative
            else slot
            for slot in made
        ]

    def _rounded(self, slot: Slot, bounded: Distance) -> Slot:
        """Return a place that holds rounding, with its distance by the size of the terms that were added."""
        self._known[content_key(slot.a)] = _Rounding(bounded, slot.distance.rel_l2 or 0.0)
        return slot._replace(verdict=Verdict.NEAR_ZERO, distance=bounded)

    def _of_terms(self, slot: Slot, size: float) -> Slot:
        return self._rounded(slot, slot.distance._replace(rel_l2=_gap(slot) / size))

    def _without_carried(self, slots: list[Slot]) -> list[Slot]:
        """Return the places of a sum whose inputs agree but for noise: outputs that cancel hold the inputs' noise."""
        inputs = [slot for slot in slots if slot.is_input]
        if any(slot.verdict in HARD for slot in inputs):
            return slots
        tensors = [slot for slot in inputs if is_tensor(slot.a) and is_tensor(slot.b)]
        given = [(_gap(slot), element_count(slot.a.get("shape"))) for slot in tensors]
        most = max((real(slot.a.get("Norm")) or 0.0 for slot in tensors), default=0.0)
        if not any(gap for gap, _ in given) or not most < _HUGE:
            return slots
        return [
            self._of_terms(slot, most)
            if slot.verdict == Verdict.DIFFERS
            and _is_carried(slot, given)
            and _gap(slot) <= _GROWN * _tolerance(slot) * most
            else slot
            for slot in slots
        ]

    def _without_rounding(self, slots: list[Slot]) -> list[Slot]:
        found = [(slot.a.get("Norm"), slot) for slot in slots if type(slot.a) is dict]
        known = [(norm, slot) for norm, slot in found if type(norm) is float and norm < _HUGE]
        most = max((norm for norm, _ in known), default=0.0)
        if all(norm >= _SMALL * most for norm, _ in known):
            return slots
        off = [
            slot for norm, slot in known if norm < _SMALL * most and slot.verdict == Verdict.DIFFERS
        ]
        small = {slot.place for slot in off if _is_rounding(slot, known)}
        return [self._of_terms(slot, most) if slot.place in small else slot for slot in slots]


def _is_rounding(slot: Slot, known: list[tuple[float, Slot]]) -> bool:
    """Return whether two tensors are so small beside a larger one of their call that their difference is rounding.

    A sum of n numbers that should be zero is as large as their rounding: larger by the root of n than that of one. In
    norms the root of n falls out.
    """
    left, right, distance_known = slot.a.get("Norm"), slot.b.get("Norm"), slot.distance.rel_l2
    tolerance = _tolerance(slot)
    count = element_count(slot.a.get("shape"))
    if type(right) is not float or distance_known is None or not tolerance or count is None:
        return False
    larger = max(left, right)
    return any(
        larger < _SMALL * norm
        and distance_known * larger <= tolerance * norm
        and of_dtype(other.a.get("dtype")) > 0.0
        and (element_count(other.a.get("shape")) or 0) >= count
        for norm, other in known
    )


def _tolerance(slot: Slot) -> float:
    return max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))


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
