# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Other bits that the next calls undo: two permutations in another order are one.

Only values with checksums are looked at. The values between the two permutations differ, and all that leave agree.
"""

from __future__ import annotations

from collections.abc import Iterator

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import EQUAL, FAINT, Slot, Verdict
from probe.reading.compare.pairing.partners import NONE

#: a region of so many calls is not followed further
_LARGEST = 16
#: the values within a region may have these verdicts
_INSIDE = EQUAL | FAINT | {Verdict.SHAPE}


def is_undone(graph: Graph, node: int, slot: Slot) -> bool:
    """Return whether all that a call makes of an input with other bits has the same bits again."""
    if "md5" not in slot.a:
        return False
    region = _Region(graph, node)
    return region.ends_with_equal_bits() and not region.gives_other_gradients()


class _Region:
    """The calls that a value with other bits passes, from the call that is given it."""

    def __init__(self, graph: Graph, first: int) -> None:
        self._graph = graph
        self._nodes = {first}
        self._waiting = [first]

    def ends_with_equal_bits(self) -> bool:
        """Return whether every value that leaves has the same bits on both sides. It finds the calls."""
        has_ends = False
        while self._waiting:
            node = self._waiting.pop()
            for side, place in self._calls(node):
                users = self._users(side, place)
                if not users:
                    return False
                for user in users:
                    verdicts = self._verdicts(side, place, user)
                    if not verdicts <= _INSIDE or len(self._nodes) > _LARGEST:
                        return False
                    if verdicts and verdicts <= EQUAL:
                        has_ends = True
                    else:
                        self._add(user)
        return has_ends

    def gives_other_gradients(self) -> bool:
        """Return whether a gradient that leaves the region has other bits."""
        return any(
            slot.is_input and slot.is_faint
            for backward in self._backwards()
            for slot in self._graph.slots[backward]
        )

    def _add(self, user: int) -> None:
        if user not in self._nodes:
            self._nodes.add(user)
            self._waiting.append(user)

    def _calls(self, node: int) -> Iterator[tuple[int, int]]:
        """Yield the side and the place of the calls of a node."""
        for side, place in enumerate(self._graph.pairs[node].places):
            if place != NONE:
                yield side, place

    def _users(self, side: int, place: int) -> set[int]:
        """Return the nodes that are given a value of a call."""
        users = self._graph.alignment.flows[side].used_by.get(place, ())
        return {self._graph.at[side][user] for user in users}

    def _verdicts(self, side: int, place: int, user: int) -> set[str]:
        """Return the verdicts on the values of a call that a user is given; none if one side alone has the user."""
        if self._graph.is_alone(user):
            return set()
        links = self._graph.alignment.flows[side].links[self._graph.pairs[user].places[side]]
        given = {link.place for link in links if link.producer == place}
        return {slot.verdict for slot in self._graph.slots[user] if slot.place in given}

    def _backwards(self) -> Iterator[int]:
        """Yield the backwards of the calls before the region: they are given the gradients that leave it."""
        for node in self._nodes:
            for side, place in self._calls(node):
                flow = self._graph.alignment.flows[side]
                for link in flow.links[place]:
                    before = link.producer
                    backward = flow.backward_of(before) if before >= 0 else None
                    if backward is not None and self._graph.at[side][before] not in self._nodes:
                        yield self._graph.at[side][backward]
