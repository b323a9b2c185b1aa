# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The regions of a dataflow: nodes of a kind that follow from each other, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator, Set

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.users import Users
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import BACKWARD

#: so many calls may be in a region
MOST = 400


class Regions:
    """Finds the regions.

    Args:
        graph: the dataflow.
        users: the users of its calls.
        members: the nodes that a region may hold.
    """

    def __init__(self, graph: Graph, users: Users, members: Set[int]) -> None:
        self._graph = graph
        self._users = users
        self._members = members

    def around(self, first: int) -> set[int]:
        """Return the members that are connected with a node; more than ``MOST`` are not all of them."""
        found = {first}
        waiting = [first]
        while waiting and len(found) <= MOST:
            node = waiting.pop()
            for near in self._near(node):
                if near in self._members and near not in found:
                    found.add(near)
                    waiting.append(near)
        return found

    def _near(self, node: int) -> Iterator[int]:
        """Yield the nodes that a node has values from, or gives values to, forward and backward."""
        for side in (0, 1):
            place = self._graph.pairs[node].places[side]
            if place != NONE:
                for near in self._near_places(side, place):
                    yield self._graph.at[side][near]

    def _near_places(self, side: int, place: int) -> Iterator[int]:
        flow = self._graph.alignment.flows[side]
        parts = flow.parts[place]
        forward = flow.forward_of(place) if parts.direction == BACKWARD else place
        around = flow.cells[place]
        if around in flow.position:
            yield flow.position[around]
        if forward is None:
            return
        makers = [link.producer for link in flow.links[forward] if link.producer >= 0]
        for call in (forward, *makers, *self._users.of(side, forward)):
            yield call
            backward = flow.backward_of(call)
            if backward is not None:
                yield backward
