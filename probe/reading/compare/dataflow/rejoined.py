# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that do one thing otherwise, between two points at which both sides have the same values.

A product in two parts is another step, or a sum in another order. All that is made of its values comes to values that
both sides have: only the noise of the net tells that they are the same but for roundings. Pairs of such calls are no
partners.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.values import tensors_in

#: so many calls in a row may do it otherwise
_MOST_CALLS = 400


class _Value(NamedTuple):
    name: str  # of the call that made it
    record: Any


class Rejoined:
    """Finds the calls between two points at which both sides have the same values."""

    def __init__(self, judged: JudgedPairs) -> None:
        self._graph = Graph(judged)
        self._tolerances = judged.tolerances

    def find(self) -> list[int]:
        """Return the places in A of pairs that are no partners."""
        graph = self._graph
        found: set[int] = set()
        for node, off in enumerate(graph.off):
            if off and node not in found and self._is_call(node):
                found |= self._reached(node)
        return [graph.pairs[node].a for node in sorted(found) if not graph.is_alone(node)]

    def _is_call(self, node: int) -> bool:
        parts = self._graph.parts(node)
        if parts.kind != API or parts.direction != FORWARD:
            return False
        return not self._graph.is_container(node)

    def _is_other(self, node: int) -> bool:
        """Return whether a call has no partner, or another result."""
        made = [slot.verdict for slot in self._graph.outputs(node)]
        return self._graph.is_alone(node) or not HARD.isdisjoint(made)

    def _reached(self, node: int) -> set[int]:
        """Return the calls behind one that differs, if all ways come to values that both sides have."""
        graph = self._graph
        for slot in graph.slots[node]:
            if slot.is_input and slot.is_hard and graph.is_unmade(node, slot.place):
                return set()  # a parameter or a batch
        found = {node}
        waiting = [node] if self._is_other(node) else []
        ends_a: list[int] = []  # calls of A that nothing uses
        ends_b: list[int] = []
        while waiting and len(found) < _MOST_CALLS:
            call = waiting.pop()
            pair = graph.pairs[call]
            for side, place, ends in ((0, pair.a, ends_a), (1, pair.b, ends_b)):
                users = self._users(side, place)
                if not users and place != NONE:
                    ends.append(place)
                waiting += filter(self._is_other, users - found)
                found |= users
        is_other_way = any(graph.soft[call] == call for call in found)  # else it is a wrong result
        if waiting or not is_other_way:
            return set()
        return found if self._are_equal(ends_a, ends_b) else set()

    def _users(self, side: int, place: int) -> set[int]:
        """Return the calls that use the outputs of one on a side."""
        flow = self._graph.alignment.flows[side]
        users = {self._graph.node_of(flow, user) for user in flow.used_by.get(place, ())}
        return set(filter(self._is_call, users))

    def _are_equal(self, ends_a: list[int], ends_b: list[int]) -> bool:
        """Return whether each value that no call uses has an equal one on the other side."""
        values_a = self._values(0, ends_a)
        values_b = self._values(1, ends_b)
        # each pair is judged, as the rules of the user count what they were applied to
        near = [self._agreeing(left, values_b) for left in values_a]
        if bool(values_a) != bool(values_b):
            return False
        return all(map(any, near)) and all(map(any, zip(*near)))

    def _agreeing(self, left: _Value, others: list[_Value]) -> list[bool]:
        """Return for each value of B whether it agrees with one of A."""
        name = f"{left.name}.output.0"
        apart = [distance(left.record, right.record) for right in others]
        return [self._tolerances.agrees(name, each, 0.0) for each in apart]

    def _values(self, side: int, places: list[int]) -> list[_Value]:
        """Return the outputs of calls."""
        alignment = self._graph.alignment
        names = alignment.flows[side].names
        values: list[_Value] = []
        for place in places:
            made = tensors_in(alignment.entry(side, place), "output")
            values += [_Value(names[place], record) for record in made]
        return values
