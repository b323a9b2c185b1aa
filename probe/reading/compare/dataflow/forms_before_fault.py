# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Regions that are another form of one thing, in a net that has a fault too.

Behind the fault all gradients differ, so those of such a region cannot be compared. Its values can: it ends in calls
that are no partners, and make equal values of more than one element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from probe.reading.compare.dataflow.agreement import have_the_same
from probe.reading.compare.dataflow.equal_values import EqualValues
from probe.reading.compare.dataflow.reformulation import Form, Reformulations
from probe.reading.compare.dataflow.region_gradients import Places, RegionGradients, maker_of
from probe.reading.compare.dataflow.roots import acts
from probe.reading.compare.dataflow.structure import moves_elements
from probe.reading.dumps.flow import tells
from probe.reading.dumps.values import Record, is_tensor

#: so many calls of a side may be in a region
_MOST = 60
#: calls that change gradients alone
_ENDS_GRADIENTS = re.compile(r"[._](stop_?gradient|detach)_?$", re.IGNORECASE)


class FormsBeforeFault:
    """Finds the regions; a call is in one of them at most."""

    def __init__(self, found: Reformulations) -> None:
        self._found = found
        self._flows = found.graph.alignment.flows
        self._equal = EqualValues(found.graph, found.factor)
        self._gradients = RegionGradients(found)

    def find(self) -> list[Form]:
        """Return the regions, in order."""
        found: list[Form] = []
        taken: tuple[set[int], set[int]] = (set(), set())
        for a, b in reversed(self._equal.pairs()):  # the greatest region first
            form = self._form(a, b)
            if form is None:
                continue
            if any(places & known for places, known in zip(form.places, taken)):
                continue
            found.append(form)
            for places, known in zip(form.places, taken):
                known.update(places)
        return found[::-1]

    def _form(self, a: int, b: int) -> Form | None:
        """Return the region that ends with two calls; None where it is no other form of one thing."""
        regions = (self._above(0, a), self._above(1, b))
        if self._takes_other_output(a) or max(map(len, regions)) > _MOST:
            return None
        if any(map(self._does_more, (0, 1), regions)):
            return None
        if not all(map(self._is_closed, (0, 1), regions, reversed(regions))):
            return None
        if not self._are_given_the_same(regions) or self._are_in_other_cells(regions):
            return None
        leaving = self._leaving(0, regions[0])
        exits = [(place, self._equal.other(0, place)) for place in leaving]
        if self._gradients.begin_to_differ(regions, exits):
            return None
        places_a, places_b = map(self._gradients.with_backwards, (0, 1), regions)
        apart = max(self._equal.apart[place] for place in leaving)
        return Form((places_a, places_b), len(leaving), apart)

    def _takes_other_output(self, a: int) -> bool:
        """Return whether a call and its partner are given two outputs of one call: they were exchanged."""
        graph = self._found.graph
        node = graph.at[0][a]
        given = [slot for slot in graph.inputs(node) if slot.is_hard]
        return any(graph.uses_other_output(node, slot.place) for slot in given)

    def _above(self, side: int, place: int) -> Places:
        """Return a call with the open calls above it."""
        found = {place}
        waiting = [place]
        while waiting and len(found) <= _MOST:
            for link in self._flows[side].links[waiting.pop()]:
                maker = maker_of(link)
                if maker >= 0 and maker not in found and self._equal.is_open(side, maker):
                    found.add(maker)
                    waiting.append(maker)
        return frozenset(found)

    def _leaving(self, side: int, region: Places) -> list[int]:
        """Return the calls of a region of which a call outside uses an output, or no call does."""
        leaving: list[int] = []
        for place in region:
            users = self._found.users.of(side, place)
            if not users or not region.issuperset(users):
                leaving.append(place)
        return leaving

    def _is_closed(self, side: int, region: Places, other: Places) -> bool:
        """Return whether each value that leaves a region is made in the region of the other side too."""
        leaving = self._leaving(side, region)
        return all(self._equal.other(side, place) in other for place in leaving)

    def _does_more(self, side: int, region: Places) -> bool:
        """Return whether a call does more than to compute, ends a gradient, or may move elements."""
        for place in region:
            parts = self._flows[side].parts[place]
            if acts(parts) or moves_elements(parts.key):
                return True
            if _ENDS_GRADIENTS.search(parts.key):
                return True
        return False

    def _are_given_the_same(self, regions: tuple[Places, Places]) -> bool:
        """Return whether each value from outside that enters on one side enters on the other."""
        given_a = list(self._given(0, regions[0]))
        given_b = list(self._given(1, regions[1]))
        return have_the_same(given_a, given_b, self._found.factor)

    def _are_in_other_cells(self, regions: tuple[Places, Places]) -> bool:
        """Return whether two regions make the same values, one by one, in other Cells: layers were exchanged."""
        places, others = regions
        if len(places) != len(others):
            return False
        flow_a, flow_b = self._flows
        for place in places:
            other = self._equal.other(0, place)
            if other not in others or flow_a.cells[place] == flow_b.cells[other]:
                return False
        return True

    def _given(self, side: int, region: Places) -> Iterator[Record]:
        """Yield the values that no recorded call made, and that are enough to know a value by."""
        for place in region:
            for link in self._flows[side].links[place]:
                record = link.record
                if link.producer < 0 and is_tensor(record) and tells(record):
                    yield record
