# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A run in one precision beside one in mixed precision: which casts carry the difference."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import HARD, Verdict
from probe.reading.compare.origins.finder import Finding
from probe.reading.compare.origins.origin import Kind
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.dtypes import CASTS, change_of, dtypes_of, size_of
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD, EntryName
from probe.reading.dumps.entry_view import INPUTS, OUTPUTS
from probe.reading.dumps.values import is_tensor

#: a call adds a difference of its own if its outputs are so many times as far apart as its inputs; the least part of
#: the calls that give half precision in a run of mixed precision, where casts do not count
_GROWN = 10.0
_MIXED = 0.25


class Casts:
    """The casts of the side of mixed precision; ``side`` is None for a single cast or layer, a change as any other."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        flows = graph.alignment.flows
        entry = graph.alignment.entry
        sizes = [{size_of(dtype) for dtype in flow.dtypes} - {0} for flow in flows]
        has_half = [min(found, default=4) <= 2 for found in sizes]
        has_wide = [max(found, default=0) > 2 for found in sizes]
        self.side = has_half.index(True) if has_half[0] != has_half[1] and all(has_wide) else None
        if self.side is not None:
            calls = (
                at
                for at, x in enumerate(flows[self.side].parts)
                if _is_call(x) and not CASTS.fullmatch(x.api)
            )
            made = [
                size
                for at in calls
                for size in map(size_of, dtypes_of(entry(self.side, at))[:1])
                if size
            ]
            count = sum(size <= 2 for size in made)
            self.side = self.side if count > 1 and count >= _MIXED * len(made) else None

    def carry(self, node: int) -> bool:
        """Return whether a node differs as one side computes it in half precision, or is a cast of that side alone."""
        if self.side is None or self._graph.is_alone(node):
            dtypes = dtypes_of(self._graph.entry(node), (*INPUTS, *OUTPUTS))
            return self._graph.side(node) == self.side and any(
                0 < size_of(dtype) <= 2 for dtype in dtypes
            )
        slots = [
            slot for slot in self._graph.slots[node] if is_tensor(slot.a) and is_tensor(slot.b)
        ]
        return any(size_of(slot.a.get("dtype")) != size_of(slot.b.get("dtype")) for slot in slots)

    def beyond(self, findings: list[Finding]) -> list[Finding]:
        """Return the findings that no cast explains. One seen at a call that adds far more is of that call."""
        return (
            findings
            if self.side is None
            else [kept for item in findings if (kept := self._kept(item)) is not None]
        )

    def _kept(self, item: Finding) -> Finding | None:
        node = item.source
        if not self.carry(item.node):
            return item
        if (
            node == NONE
            or self.carry(node)
            or self._apart([node], False) <= _GROWN * self._apart([node], True)
        ):
            return None
        slots = self._graph.slots[node]
        argument = [
            slot.place for slot in slots if slot.is_input and slot.verdict == Verdict.ARGUMENT
        ]
        places = argument + [slot.place for slot in slots if slot.verdict in HARD] + [""]
        kind = Kind.GRADIENT if self._graph.parts(node).direction == BACKWARD else Kind.COMPUTATION
        return Finding(Kind.ARGUMENT if argument else kind, node, places[0], why=item.why)

    def differences(self) -> list[dict[str, Any]]:
        """Return where half enters, and by how much more the next values differ ("adds"): those that add most first."""
        if self.side is None:
            return []
        graph = self._graph
        found = []
        flow = self._graph.alignment.flows[self.side]
        nodes = [graph.node_of(flow, place) for place in range(len(flow.names))]
        for place in (place for place, parts in enumerate(flow.parts) if _is_call(parts)):
            change = change_of(graph.dumps[self.side], flow.names[place])
            if change is not None and change.enters:
                makers = [nodes[link.producer] for link in flow.links[place] if link.producer >= 0]
                users = [
                    nodes[user]
                    for user in flow.used_by.get(place, ())
                    if _is_call(flow.parts[user])
                ]
                before = max(self._apart([nodes[place]], True), self._apart(makers, False))
                adds = max(self._apart(users, False) - before, 0.0)
                found.append({**change._asdict(), "side": "AB"[self.side], "adds": adds})
        return sorted(found, key=lambda item: -item["adds"])

    def _apart(self, nodes: list[int], inputs: bool) -> float:
        """Return how far the inputs, or the outputs, of pairs are apart; 0.0 where they have no partner."""
        slots = (
            slot for node in nodes for slot in self._graph.slots[node] if slot.is_input is inputs
        )
        return max((slot.distance.rel_l2 or 0.0 for slot in slots), default=0.0)


def _is_call(parts: EntryName) -> bool:
    return parts.kind == API and parts.direction == FORWARD
