# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that do one thing by other steps: all that is made of their values comes to values that both sides have.

A product in two parts is an example, or a sum in another order. It needs the noise of the net: only this tells that the
values behind it are the same but for roundings. Pairs of such calls are no partners.
"""

from __future__ import annotations

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.bounds import distance
from probe.reading.compare.distances.net_noise import NET_FACTOR, NetNoise, unit
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD, GRADIENT
from probe.reading.dumps.values import element_count, is_tensor, tensors_in

#: so many calls in a row may do it otherwise
_MOST = 400


class Rejoined:
    """Finds the calls between two points at which both sides have the same values."""

    def __init__(self, graph: Graph, noise: NetNoise, factor: float) -> None:
        self._graph, self._noise, self._factor = graph, noise, NET_FACTOR * factor
        self._between: set[int] = set()  # nodes that do it otherwise
        self._joins: set[int] = set()  # nodes that are given other values, and make the same of them

    def find(self) -> list[int]:
        """Return the places in A of pairs that are no partners."""
        for node in range(len(self._graph.pairs)):
            if self._is_call(node) and self._graph.off[node] and node not in self._between | self._joins:
                self._follow(node)
        return [self._graph.pairs[node].a for node in sorted(self._between) if self._graph.pairs[node].a != NONE]

    def forgiven(self, node: int, slots: list[Slot]) -> list[Slot]:
        """Return the places of a pair; values that a join was given, and gradients for them, are not compared."""
        graph, own = self._graph, node
        if graph.parts(node).direction == BACKWARD:
            flow, place = graph.flow(node)
            forward = flow.forward_of(place)
            own = node if forward is None else graph.node_of(flow, forward)
        if own not in self._joins or (own != node and not self._gradients_agree()):
            return slots
        return [slot._replace(verdict=Verdict.UNKNOWN) if slot.verdict in HARD else slot for slot in slots]

    def _gradients_agree(self) -> bool:
        graph = self._graph
        return not any(off and graph.parts(node).kind == GRADIENT for node, off in enumerate(graph.off))

    def _is_call(self, node: int) -> bool:
        parts = self._graph.parts(node)
        return parts.kind == API and parts.direction == FORWARD and not self._graph.is_container(node)

    def _is_other(self, node: int) -> bool:
        """Return whether a call has no partner, or another result."""
        graph = self._graph
        is_alone = NONE in graph.pairs[node][:2]
        return is_alone or any(slot.verdict in HARD for slot in graph.slots[node] if not slot.is_input)

    def _follow(self, node: int) -> None:
        """Note the calls behind one that differs, if all ways come to values that both sides have."""
        graph = self._graph
        hard = [slot.place for slot in graph.slots[node] if slot.is_input and slot.verdict in HARD]
        if any(max(graph.producer_nodes(node, place)) == NONE for place in hard):
            return  # a parameter or a batch
        between, joins = ({node}, set[int]()) if self._is_other(node) else (set[int](), {node})
        waiting, results = sorted(between), ([], [])  # type: tuple[list[int], tuple[list[int], list[int]]]
        while waiting and len(between) < _MOST:
            following = waiting.pop()
            for side, place in enumerate(graph.pairs[following][:2]):
                users = self._users(side, place) if place != NONE else []
                if place != NONE and not users:
                    results[side].append(place)
                for user in users:
                    if not self._is_other(user):
                        joins.add(user)
                    elif user not in between:
                        between.add(user)
                        waiting.append(user)
        is_other_way = any(graph.soft[item] == item for item in between | joins)  # else it is a wrong result
        if not waiting and is_other_way and self._are_equal(results):
            self._between |= between
            self._joins |= joins

    def _users(self, side: int, place: int) -> list[int]:
        flow = self._graph.alignment.flows[side]
        nodes = [self._graph.node_of(flow, user) for user in flow.used_by.get(place, ())]
        return [node for node in nodes if self._is_call(node)]

    def _are_equal(self, results: tuple[list[int], list[int]]) -> bool:
        """Return whether each value that no call uses has an equal one on the other side."""
        own, other = ([item for place in results[side] for item in self._made(side, place)] for side in (0, 1))
        return all(any(self._is_near(a, b) for b in other) for a in own) and all(
            any(self._is_near(a, b) for a in own) for b in other
        )

    def _made(self, side: int, place: int) -> list[tuple[str, dict[str, object]]]:
        name = self._graph.alignment.flows[side].names[place]
        found = tensors_in(self._graph.alignment.entry(side, place), "output")
        return [(f"{name}.output.{at}", record) for at, record in enumerate(found) if is_tensor(record)]

    def _is_near(self, a: tuple[str, dict[str, object]], b: tuple[str, dict[str, object]]) -> bool:
        if element_count(a[1].get("shape")) != element_count(b[1].get("shape")):
            return False
        apart = distance(a[1], b[1]).rel_l2
        noise = max(self._noise.get(a[0], 0.0), unit(a[1].get("dtype")), unit(b[1].get("dtype")))
        return apart is not None and apart <= self._factor * noise
