# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that do one thing by other steps: all that is made of their values comes to values that both sides have.

A product in two parts is an example, or a sum in another order. It needs the noise of the net: only this tells that the
values behind it are the same but for roundings. Pairs of such calls are no partners.
"""

from __future__ import annotations

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.tolerance import distance
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.values import tensors_in

#: so many calls in a row may do it otherwise
_MOST = 400


class Rejoined:
    """Finds the calls between two points at which both sides have the same values."""

    def __init__(self, judged: JudgedPairs) -> None:
        self._graph, self._tolerances = Graph(judged), judged.tolerances

    def find(self) -> list[int]:
        """Return the places in A of pairs that are no partners."""
        graph, found = self._graph, set[int]()
        for node, off in enumerate(graph.off):
            if off and node not in found and self._is_call(node):
                found |= self._reached(node)
        return [graph.pairs[node].a for node in sorted(found) if not graph.is_alone(node)]

    def _is_call(self, node: int) -> bool:
        parts = self._graph.parts(node)
        return parts.kind == API and parts.direction == FORWARD and not self._graph.is_container(node)

    def _is_other(self, node: int) -> bool:
        """Return whether a call has no partner, or another result."""
        made = [slot.verdict for slot in self._graph.slots[node] if not slot.is_input]
        return self._graph.is_alone(node) or not HARD.isdisjoint(made)

    def _reached(self, node: int) -> set[int]:
        """Return the calls behind one that differs, if all ways come to values that both sides have."""
        graph = self._graph
        hard = [slot.place for slot in graph.slots[node] if slot.is_input and slot.verdict in HARD]
        if any(max(graph.producer_nodes(node, place)) == NONE for place in hard):
            return set()  # a parameter or a batch
        found, waiting = {node}, [node] if self._is_other(node) else []
        results: tuple[list[int], list[int]] = [], []  # calls that nothing uses, in A and B
        while waiting and len(found) < _MOST:
            following = waiting.pop()
            for flow, place, ends in zip(graph.alignment.flows, graph.pairs[following][:2], results):
                users = {graph.node_of(flow, user) for user in flow.used_by.get(place, ())}
                users = set(filter(self._is_call, users))
                ends.extend([place] * (place != NONE and not users))
                waiting += filter(self._is_other, users - found)
                found |= users
        is_other_way = any(graph.soft[item] == item for item in found)  # else it is a wrong result
        return found if not waiting and is_other_way and self._are_equal(results) else set()

    def _are_equal(self, results: tuple[list[int], list[int]]) -> bool:
        """Return whether each value that no call uses has an equal one on the other side."""
        graph, agrees = self._graph, self._tolerances.agrees
        a, b = (
            [
                (flow.names[place], x)
                for place in places
                for x in tensors_in(graph.alignment.entry(side, place), "output")
            ]
            for side, (flow, places) in enumerate(zip(graph.alignment.flows, results))
        )
        near = [[agrees(f"{name}.output.0", distance(left, right), 0.0) for _, right in b] for name, left in a]
        return bool(a) == bool(b) and all(map(any, near)) and all(map(any, zip(*near)))
