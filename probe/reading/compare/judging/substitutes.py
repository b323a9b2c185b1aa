# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Looks for pairs that are not one call, as both sides come to the same values in other ways.

Three matmuls are one and slices of it, or a matmul is a batched one between two reshapes. The pairing by name and order
then pairs calls with inputs of other shapes. Their differences reach no value that the two sides have in common. The
same holds for calls before the update that are no partners.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from probe.reading.compare.judging.updates import enters_equal
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.partners import NONE, REPLACED, Pair
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import is_tensor, tensors_in

#: so many calls are looked at behind one
_MOST = 400


def before_updates(
    alignment: Alignment,
    updates: Collection[int],
    pairs: Sequence[Pair],
    slots: Sequence[list[Slot]],
) -> list[int]:
    """Return calls between gradients and optimizer that differ though what enters the optimizer agrees."""
    wrong: list[int] = []
    for number, pair in enumerate(pairs):
        if pair.a not in updates or pair.b == NONE or not enters_equal(slots[number]):
            continue
        for before in range(number - 1, -1, -1):
            other = pairs[before]
            if not _is_forward(alignment, other):
                break
            if other.a not in updates and any(slot.is_hard for slot in slots[before]):
                # no partners, but one thing by other calls: a / 2 + b / 2, and (a + b) / 2
                wrong.append(other.a)
    return wrong


def _is_forward(alignment: Alignment, pair: Pair) -> bool:
    flow_a, flow_b = alignment.flows
    parts = flow_b.parts[pair.b] if pair.a == NONE else flow_a.parts[pair.a]
    return parts.direction == FORWARD


class Substitutes:
    """Looks for pairs that are not one call."""

    def __init__(
        self, alignment: Alignment, pairs: Sequence[Pair], slots: Sequence[list[Slot]]
    ) -> None:
        self._alignment = alignment
        #: by side and place
        self._slots: dict[tuple[int, int], list[Slot]] = {}
        #: place in A -> place in B, of pairs that may be none
        self._candidates: dict[int, int] = {}
        for pair, own in zip(pairs, slots):
            self._slots[0, pair.a] = own
            self._slots[1, pair.b] = own
            if self._is_candidate(pair, own):
                self._candidates[pair.a] = pair.b

    def find(self) -> list[int]:
        """Return the places in A of the pairs to take apart."""
        return [a for a, b in self._candidates.items() if self._are_dead(a, b)]

    def _is_candidate(self, pair: Pair, slots: list[Slot]) -> bool:
        if not pair.is_whole:
            return False
        flow_a, _ = self._alignment.flows
        parts = flow_a.parts[pair.a]
        if parts.kind != API or parts.direction != FORWARD:
            return False
        given = [slot for slot in slots if slot.is_input]
        verdicts = [slot.verdict for slot in given]
        if pair.how == REPLACED:
            may_be_other = not HARD.isdisjoint(verdicts)
        else:
            may_be_other = Verdict.SHAPE in verdicts or Verdict.ONE_SIDE in verdicts
        return may_be_other and not _are_exchanged(given)

    def _are_dead(self, a: int, b: int) -> bool:
        return self._is_dead(0, a) and self._is_dead(1, b)

    def _is_dead(self, side: int, start: int) -> bool:
        """Return whether all that is made of a value on one side comes to values that both sides have."""
        flow = self._alignment.flows[side]
        partners = self._alignment.partners(side)
        own = {start}
        waiting = [start]
        while waiting and len(own) < _MOST:
            place = waiting.pop()
            users = flow.used_by.get(place, ())
            if not users and tensors_in(self._alignment.entry(side, place), "output"):
                return False  # a result
            for user in users:
                place_a = user if side == 0 else partners.get(user)
                if user in partners and place_a not in self._candidates:
                    if self._is_given_other(side, user, place):
                        return False
                elif user not in own:
                    own.add(user)
                    waiting.append(user)
        return not waiting

    def _is_given_other(self, side: int, user: int, producer: int) -> bool:
        """Return whether a call is given an output of another one that differs."""
        flow = self._alignment.flows[side]
        links = flow.links[user]
        places = {link.place for link in links if link.producer == producer}
        slots = self._slots.get((side, user), ())
        given = [slot.verdict for slot in slots if slot.place in places]
        return not HARD.isdisjoint(given)


def _are_exchanged(given: Sequence[Slot]) -> bool:
    """Return whether two calls are given the same tensors at other places: then they are one call."""
    contents = [
        [content_key(record) for record in records if is_tensor(record)]
        for records in ([slot.a for slot in given], [slot.b for slot in given])
    ]
    in_a, in_b = contents
    return None not in in_a and in_a != in_b and Counter(in_a) == Counter(in_b)
