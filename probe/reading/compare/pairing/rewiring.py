# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of a Cell anew by their inputs, where their order alone has paired them wrongly."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.call_content import plain_arguments
from probe.reading.dumps.flow import Link

#: the source of a call whose input comes from a call without a partner
_NO_PARTNER = -2


class Rewiring:
    """Looks for Cells in which partners take their inputs from calls that are none, and pairs their calls anew."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment

    def run(self) -> int:
        """Pair anew where that makes more inputs come from partners; return in how many Cells that was done."""
        alignment = self._alignment
        wrong = {a for a, b in alignment.b_of.items() if self._mismatches(a, b)}
        if not wrong:
            return 0
        calls_a = alignment.calls_by_home(0)
        calls_b = alignment.calls_by_home(1)
        count = 0
        for home, places in calls_a.items():
            if wrong.intersection(places):
                count += self._rewire(places, calls_b.get(home, []))
        alignment.pair_backwards()
        return count

    def _rewire(self, places_a: list[int], places_b: list[int]) -> bool:
        """Pair the calls of a Cell anew; return whether that is better, else they stay as they were."""
        alignment = self._alignment
        keys_a = self._signatures(0, places_a)
        keys_b = self._signatures(1, places_b)
        before = alignment.found(places_a)
        faults_before = self._faults(before)
        alignment.separate_calls(a for a, _ in before)
        alignment.pair_anew(keys_a, keys_b, before)
        now = alignment.found(places_a)
        lost = max(len(before) - len(now), 0)
        is_other = now.keys() != before.keys()
        if is_other and self._faults(now) + lost < faults_before:
            return True
        alignment.separate_calls(a for a, _ in now)
        for (a, b), how in before.items():
            alignment.pair(a, b, how)
        return False

    def _faults(self, pairs: Iterable[tuple[int, int]]) -> int:
        """Return how many inputs and plain arguments of partners do not fit."""
        count = 0
        for a, b in pairs:
            count += self._mismatches(a, b)
            count += self._are_unlike(a, b)
        return count

    def _mismatches(self, a: int, b: int) -> int:
        """Return how many inputs of two partners come from calls that are no partners."""
        flow_a, flow_b = self._alignment.flows
        links_a = flow_a.links[a]
        links_b = flow_b.links[b]
        if not links_a or flow_a.names[a] in flow_a.containers:
            return 0
        return sum(map(self._is_other, links_a, links_b))

    def _is_other(self, left: Link, right: Link) -> bool:
        """Return whether an input comes from another call, or is another parameter."""
        if (left.root < 0) != (right.root < 0):
            return True
        if left.root >= 0:
            is_other = self._alignment.b_of.get(left.root) != right.root
            return is_other and not self._alignment.is_one_loosely(left, right)
        if left.parameter and right.parameter:
            return self._parameter(0, left.parameter) != self._parameter(1, right.parameter)
        return False

    def _parameter(self, side: int, parameter: tuple[str, str]) -> Hashable:
        """Return a name of a parameter that is the same on both sides."""
        cell, name = parameter
        flow = self._alignment.flows[side]
        place = flow.position.get(cell)
        if side == 1 and place is not None:
            return self._alignment.a_of.get(place, cell), name
        return place, name

    def _are_unlike(self, a: int, b: int) -> bool:
        entry_a = self._alignment.entry(0, a)
        entry_b = self._alignment.entry(1, b)
        return plain_arguments(entry_a) != plain_arguments(entry_b)

    def _signatures(self, side: int, places: list[int]) -> dict[int, Hashable]:
        """Return a key for each call of a Cell: the API, the plain arguments and the producers of the inputs."""
        flow = self._alignment.flows[side]
        signatures: dict[int, Hashable] = {}
        for place in places:
            sources: list[Hashable] = []
            for link in flow.links[place]:
                inner = signatures.get(link.root)
                sources.append(self._source(side, link) if inner is None else inner)
            api = flow.parts[place].api
            entry = self._alignment.entry(side, place)
            arguments = plain_arguments(entry)
            signature = (api.strip("_").lower(), arguments, tuple(sources))
            signatures[place] = hash(signature)
        return signatures

    def _source(self, side: int, link: Link) -> Hashable:
        """Return where an input from outside of the Cell comes from, by names that both sides share."""
        if link.root >= 0:
            call = link.root if side == 0 else self._alignment.a_of.get(link.root, _NO_PARTNER)
            return "call", call
        if link.parameter:
            return "parameter", self._parameter(side, link.parameter)
        return "outside", str(link.record.get("shape"))
