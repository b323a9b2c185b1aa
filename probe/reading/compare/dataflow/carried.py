# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Differences that a call only carries on, kernels that round in another way, and calls that do one thing otherwise.

All need the noise of the net. Beside each tensor stands its excess: its distance by its noise. A call that carries a
difference on leaves the excess as it is. A call whose outputs have a larger excess than its inputs adds something of
its own. If all calls of its kind do so, by no more than the rounding of half precision, it is a kernel difference: HF32
in products of matrices, say.

A product in two parts is another step, or a sum in another order. All that is made of its values comes to values that
both sides have: only the noise tells that they are the same but for roundings. Pairs of such calls are no partners.
"""

from __future__ import annotations

import re
from statistics import median

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import NET_FACTOR
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import FAINT, HARD, Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import NUMBERS
from probe.reading.dumps.values import is_tensor, tensors_in

#: a difference of kernels is at most so large: HF32 has ten bits. Calls of one kind differ by no more than a factor
_MOST = 2e-3
_ALIKE = 8.0
#: the last outputs whose excess is asked; so many calls of a kind have at least their typical difference
_RECENT = 17
_COMMON = 0.8
_PRODUCTS = re.compile(
    r"(?i)\w*(matmul|conv\d|convolution|dense|linear|einsum)\w*|b?mm|addmm|baddbmm|mv|dot"
)
#: so many calls in a row may do it otherwise
_MOST_CALLS = 400


class Carried:
    """Judges the places of all calls again, with the excess of what went in."""

    def __init__(self, judged: JudgedPairs) -> None:
        self._judged = judged
        self._graph = (graph := Nodes(judged, judged.slots))
        self._noise = judged.tolerances.net
        self._factor = NET_FACTOR * judged.tolerances.factor
        calls = [
            node
            for node in range(len(graph.pairs))
            if not graph.is_alone(node) and not graph.is_container(node)
        ]
        self._kinds = {node: self._kind(graph.parts(node)) for node in calls}
        self._jumps: dict[
            str, list[float]
        ] = {}  # kind -> the differences that its calls were seen to add
        self._first = next(
            (node for node in calls if graph.parts(node).direction == BACKWARD), len(graph.pairs)
        )

    def judge(self) -> list[tuple[str, int, float]]:
        """Renew the verdicts, and return the kinds of calls that round in another way: (kind, calls, rel_l2)."""
        self._walk(None)  # each difference that a kernel may make is let through and noted
        found = []
        for kind, seen in self._jumps.items():
            typical = median(seen)
            made = [self._graph.slots[node] for node, own in self._kinds.items() if own == kind]
            sizes = [
                max((_size(slot) for slot in slots if not slot.is_input), default=0.0)
                for slots in made
            ]
            if len(sizes) > 1 and sum(size * _ALIKE >= typical for size in sizes) >= _COMMON * len(
                sizes
            ):
                found.append((kind, len(sizes), typical))
        self._judged.slots = self._walk({kind: _ALIKE * typical for kind, _, typical in found})
        return found

    def _kind(self, parts: EntryName) -> str:
        own = "products of matrices" if _PRODUCTS.fullmatch(parts.api) else parts.api
        return own if parts.direction != BACKWARD else f"{own} (backward)"

    def _walk(self, allowed: dict[str, float] | None) -> list[list[Slot]]:
        found = list(self._graph.slots)
        self._known = set[object]()
        self._excesses = list[float]()
        self._worst = 1.0
        for node in self._kinds:
            found[node] = self._call(node, allowed)
        for node in (
            set(range(len(found))) - self._kinds.keys()
        ):  # Cells: by what their calls have carried
            most = self._worst if self._graph.parts(node).direction == BACKWARD else 0.0
            found[node] = [self._eased(node, slot, most, True) for slot in found[node]]
        return found

    def _call(self, node: int, allowed: dict[str, float] | None) -> list[Slot]:
        # gradients are sums whose terms nothing tells: they have the excess of any call before
        least = self._worst if node >= self._first else 0.0
        kind = self._kinds[node]
        slots = [
            self._eased(node, slot, least, True) if slot.is_input else slot
            for slot in self._graph.slots[node]
        ]
        inputs = [slot for slot in slots if slot.is_input]
        if not HARD.isdisjoint([slot.verdict for slot in inputs]):
            return slots
        # one sample again: an input may be near by chance, where those around it are not
        usual = median(self._excesses[-_RECENT:] or [1.0])
        most = max(
            [
                1.0,
                least,
                usual,
                *(self._excess(node, slot) for slot in inputs if slot.verdict in FAINT),
            ]
        )
        made = {
            slot.place: self._eased(node, slot, most)
            for slot in slots
            if not slot.is_input and is_tensor(slot.b)
        }
        over = [
            slot
            for slot in made.values()
            if slot.verdict == Verdict.DIFFERS and self._excess(node, slot)
        ]
        if over:
            worst = max(over, key=_size)
            limit = (
                max(_MOST, 2 * of_dtype(worst.a.get("dtype")))
                if allowed is None
                else allowed.get(kind, 0.0)
            )
            if _size(worst) <= limit:
                self._jumps.setdefault(kind, []).append(_size(worst))
                made.update((slot.place, slot._replace(verdict=Verdict.CLOSE)) for slot in over)
        self._excesses += [
            self._excess(node, slot) for slot in made.values() if slot.verdict not in HARD
        ]
        for slot in made.values():
            if slot.verdict in FAINT:
                self._known.add(content_key(slot.b))
                self._worst = max(self._worst, self._excess(node, slot))
        return [slot if slot.is_input else made.get(slot.place, slot) for slot in slots]

    def _eased(self, node: int, slot: Slot, most: float, may_be_known: bool = False) -> Slot:
        """Return a place as close if its content was carried, or if it has no more than an excess that was given."""
        if slot.verdict != Verdict.DIFFERS:
            return slot
        is_within = (
            not slot.place.startswith(NUMBERS)
            and 0.0 < self._excess(node, slot) <= self._factor * most
        )
        is_within |= may_be_known and content_key(slot.b) in self._known
        return slot._replace(verdict=Verdict.CLOSE) if is_within else slot

    def _excess(self, node: int, slot: Slot) -> float:
        own = self._noise.get(
            f"{self._graph.alignment.flows[0].names[self._graph.pairs[node].a]}.{slot.place}", 0.0
        )
        return _size(slot) / own if own else 0.0


def _size(slot: Slot) -> float:
    return slot.distance.rel_l2 or 0.0


class Rejoined:
    """Finds the calls between two points at which both sides have the same values."""

    def __init__(self, judged: JudgedPairs) -> None:
        self._graph = Graph(judged)
        self._tolerances = judged.tolerances

    def find(self) -> list[int]:
        """Return the places in A of pairs that are no partners."""
        graph = self._graph
        found = set[int]()
        for node, off in enumerate(graph.off):
            if off and node not in found and self._is_call(node):
                found |= self._reached(node)
        return [graph.pairs[node].a for node in sorted(found) if not graph.is_alone(node)]

    def _is_call(self, node: int) -> bool:
        parts = self._graph.parts(node)
        return (
            parts.kind == API and parts.direction == FORWARD and not self._graph.is_container(node)
        )

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
        found = {node}
        waiting = [node] if self._is_other(node) else []
        results: tuple[list[int], list[int]] = [], []  # calls that nothing uses, in A and B
        while waiting and len(found) < _MOST_CALLS:
            following = waiting.pop()
            for flow, place, ends in zip(
                graph.alignment.flows, graph.pairs[following][:2], results
            ):
                users = {graph.node_of(flow, user) for user in flow.used_by.get(place, ())}
                users = set(filter(self._is_call, users))
                ends.extend([place] * (place != NONE and not users))
                waiting += filter(self._is_other, users - found)
                found |= users
        is_other_way = any(graph.soft[item] == item for item in found)  # else it is a wrong result
        return found if not waiting and is_other_way and self._are_equal(results) else set()

    def _are_equal(self, results: tuple[list[int], list[int]]) -> bool:
        """Return whether each value that no call uses has an equal one on the other side."""
        graph = self._graph
        agrees = self._tolerances.agrees
        a, b = (
            [
                (flow.names[at], x)
                for at in places
                for x in tensors_in(graph.alignment.entry(side, at), "output")
            ]
            for side, (flow, places) in enumerate(zip(graph.alignment.flows, results))
        )
        near = [
            [agrees(f"{name}.output.0", distance(left, right), 0.0) for _, right in b]
            for name, left in a
        ]
        return bool(a) == bool(b) and all(map(any, near)) and all(map(any, zip(*near)))
