# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Takes pairs apart that are not one call: both sides come to the same values in other ways.

Three matmuls are one and slices of it, or a matmul is a batched one between two reshapes. The pairing by name and order
then pairs calls with inputs of other shapes. Their differences reach no value that the two sides have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from probe.reading.compare.judging.verdicts import HARD, ONE_SIDE, SHAPE, Slot
from probe.reading.compare.pairing.alignment import NONE, REPLACED, Alignment, Pair
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.values import is_tensor, leaves

_MOST = 400


class Substitutes:
    """Looks for such pairs.

    Args:
        alignment: the pairs.
        pairs: the same, in order.
        slots: for each the places with their verdicts.
    """

    def __init__(self, alignment: Alignment, pairs: Sequence[Pair], slots: Sequence[list[Slot]]) -> None:
        self._alignment = alignment
        self._flows, self._partners = alignment.flows, (alignment.b_of, alignment.a_of)
        self._slots = {(side, pair[side]): found for pair, found in zip(pairs, slots) for side in (0, 1)}
        self._candidates = {pair.a: pair.b for pair, found in zip(pairs, slots) if self._is_candidate(pair, found)}

    def find(self) -> list[int]:
        """Return the places in A of the pairs to take apart."""
        return [a for a, b in self._candidates.items() if self._is_dead(0, a) and self._is_dead(1, b)]

    def _is_candidate(self, pair: Pair, slots: list[Slot]) -> bool:
        if NONE in pair[:2]:
            return False
        parts = self._flows[0].parts[pair.a]
        if parts.kind != API or parts.direction != FORWARD:
            return False
        given = [slot.verdict for slot in slots if slot.is_input]
        return SHAPE in given or ONE_SIDE in given or (pair.how == REPLACED and not HARD.isdisjoint(given))

    def _is_dead(self, side: int, place: int) -> bool:
        """Return whether all that is made of a value on one side comes to values that both sides have."""
        flow, own = self._flows[side], {place}
        waiting = [place]
        while waiting and len(own) < _MOST:
            place = waiting.pop()
            users = flow.used_by.get(place, ())
            if not users and self._makes_tensors(side, place):
                return False  # a result
            for user in users:
                if not self._is_candidate_at(side, user) and user in self._partners[side]:
                    if any(slot.verdict in HARD for slot in self._given(side, user, place)):
                        return False
                elif user not in own:
                    own.add(user)
                    waiting.append(user)
        return not waiting

    def _makes_tensors(self, side: int, place: int) -> bool:
        entry = self._alignment.entry(side, place)
        return isinstance(entry, dict) and any(is_tensor(leaf) for _, leaf in leaves(entry.get("output")))

    def _is_candidate_at(self, side: int, place: int) -> bool:
        return (place if side == 0 else self._partners[1].get(place)) in self._candidates

    def _given(self, side: int, user: int, producer: int) -> list[Slot]:
        """Return the verdicts on what a call takes from a producer."""
        places = {link.place for link in self._flows[side].links[user] if link.producer == producer}
        return [slot for slot in self._slots.get((side, user), ()) if slot.place in places]
