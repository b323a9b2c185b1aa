# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of a Cell by their inputs where their order alone has paired them wrongly."""

from __future__ import annotations

from collections.abc import Hashable

from probe.reading.compare.pairing.alignment import MOVED, Alignment
from probe.reading.compare.pairing.between import plain_arguments
from probe.reading.dumps.flow import Link

#: the source of a call whose input comes from a call without a partner
_NO_PARTNER = -2


class Rewiring:
    """Looks for Cells in which partners take their inputs from calls that are none, and pairs their calls anew."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment

    def run(self) -> int:
        """Pair anew where that makes more inputs come from partners; return in how many Cells that was done."""
        wrong = {a for a in self._alignment.b_of if self._mismatches(a, self._alignment.b_of[a])}
        if not wrong:
            return 0
        calls_a, calls_b = self._alignment.calls_by_home(0), self._alignment.calls_by_home(1)
        count = 0
        for home, places in calls_a.items():
            if wrong.intersection(places):
                count += self._rewire(places, calls_b.get(home, []))
        self._alignment.pair_backwards()
        return count

    def _mismatches(self, a: int, b: int) -> int:
        """Return how many inputs of two partners come from calls that are no partners."""
        flow_a, flow_b = self._alignment.flows
        links_a, links_b = flow_a.links[a], flow_b.links[b]
        if not links_a or flow_a.names[a] in flow_a.containers:
            return 0
        count = 0
        for left, right in zip(links_a, links_b):
            if (left.root < 0) != (right.root < 0):
                count += 1
            elif left.root >= 0:
                is_other = self._alignment.b_of.get(left.root) != right.root
                count += is_other and not self._alignment.is_one_loosely(left, right)
            elif left.parameter and right.parameter:
                count += self._parameter(0, left) != self._parameter(1, right)
        return count

    def _parameter(self, side: int, link: Link) -> Hashable:
        """Return a name of a parameter that is the same on both sides."""
        assert link.parameter is not None
        cell, name = link.parameter
        place = self._alignment.flows[side].position.get(cell)
        if side == 1 and place is not None:
            return self._alignment.a_of.get(place, cell), name
        return place, name

    def _rewire(self, places_a: list[int], places_b: list[int]) -> bool:
        alignment = self._alignment
        before = {a: alignment.b_of[a] for a in places_a if a in alignment.b_of}
        how = {a: alignment.how[a] for a in before}
        wrong = sum(self._mismatches(a, b) for a, b in before.items()) + self._unlike(before)
        signatures_b: dict[Hashable, list[int]] = {}
        for place, signature in self._signatures(1, places_b).items():
            signatures_b.setdefault(signature, []).append(place)
        signatures_a = self._signatures(0, places_a)
        alignment.separate_calls(before)
        for a, signature in signatures_a.items():
            if partners := signatures_b.get(signature):
                b = partners.pop(0)
                alignment.pair(a, b, how[a] if before.get(a) == b else MOVED)
        rest_a = [place for place in places_a if place not in alignment.b_of]
        rest_b = [place for place in places_b if place not in alignment.a_of]
        alignment.pair_sequences(rest_a, rest_b)
        now = {a: alignment.b_of[a] for a in places_a if a in alignment.b_of}
        lost = max(len(before) - len(now), 0)
        if now != before and sum(self._mismatches(a, b) for a, b in now.items()) + self._unlike(now) + lost < wrong:
            return True
        alignment.separate_calls(now)
        for a, b in before.items():
            alignment.pair(a, b, how[a])
        return False

    def _unlike(self, pairs: dict[int, int]) -> int:
        """Return how many pairs have other plain arguments."""
        entry = self._alignment.entry
        return sum(plain_arguments(entry(0, a)) != plain_arguments(entry(1, b)) for a, b in pairs.items())

    def _signatures(self, side: int, places: list[int]) -> dict[int, Hashable]:
        """Return a key for each call of a Cell: the API, the plain arguments and the producers of the inputs."""
        found: dict[int, Hashable] = {}
        flow = self._alignment.flows[side]
        inner = set(places)
        for place in places:
            sources: list[Hashable] = []
            for link in flow.links[place]:
                if link.root in inner and link.root in found:
                    sources.append(found[link.root])
                elif link.root >= 0:
                    own = link.root if side == 0 else self._alignment.a_of.get(link.root, _NO_PARTNER)
                    sources.append(("call", own))
                elif link.parameter:
                    sources.append(("parameter", self._parameter(side, link)))
                else:
                    sources.append(("outside", str(link.record.get("shape"))))
            name, entry = flow.parts[place].api.strip("_").lower(), self._alignment.entry(side, place)
            found[place] = hash((name, plain_arguments(entry), tuple(sources)))
        return found
