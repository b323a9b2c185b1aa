# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A run in one precision beside one in mixed precision: which casts carry the difference."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.compare.origins.finding import Finding
from probe.reading.compare.origins.origin import Kind
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.dtypes import CASTS, change_of, dtypes_of, size_of
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD, EntryName
from probe.reading.dumps.entry_view import INPUTS, OUTPUTS
from probe.reading.dumps.flow import Flow

#: a call adds a difference of its own if its outputs are so many times as far apart as its inputs; the least part of
#: the calls that give half precision in a run of mixed precision, where casts do not count
_GROWN = 10.0
_MIXED = 0.25


class Casts:
    """The casts of the side of mixed precision; ``side`` is None for a single cast or layer, a change as any other."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        side = self._side_with_half()
        is_mixed = side is not None and self._is_mixed(side)
        self.side = side if is_mixed else None

    def _side_with_half(self) -> int | None:
        """Return the side that alone has half precision, if both have wider numbers."""
        flow_a, flow_b = self._graph.alignment.flows
        sizes_a = _sizes(flow_a)
        sizes_b = _sizes(flow_b)
        has_half_a = min(sizes_a, default=4) <= 2
        has_half_b = min(sizes_b, default=4) <= 2
        has_wide = max(sizes_a, default=0) > 2 and max(sizes_b, default=0) > 2
        if has_half_a == has_half_b or not has_wide:
            return None
        return 0 if has_half_a else 1

    def _is_mixed(self, side: int) -> bool:
        """Return whether enough calls of a side give half precision."""
        alignment = self._graph.alignment
        sizes = []
        for place, parts in enumerate(alignment.flows[side].parts):
            if _is_call(parts) and not CASTS.fullmatch(parts.api):
                first = dtypes_of(alignment.entry(side, place))[:1]
                sizes += [size_of(dtype) for dtype in first]
        known = [size for size in sizes if size]
        count = sum(size <= 2 for size in known)
        return count > 1 and count >= _MIXED * len(known)

    def carry(self, node: int) -> bool:
        """Return whether a node differs as one side computes it in half precision, or is a cast of that side alone."""
        graph = self._graph
        if self.side is None or graph.is_alone(node):
            if graph.side(node) != self.side:
                return False
            dtypes = dtypes_of(graph.entry(node), (*INPUTS, *OUTPUTS))
            return any(0 < size_of(dtype) <= 2 for dtype in dtypes)
        slots = [slot for slot in graph.slots[node] if slot.are_tensors]
        return any(_has_other_sizes(slot) for slot in slots)

    def beyond(self, findings: list[Finding]) -> list[Finding]:
        """Return the findings that no cast explains. One seen at a call that adds far more is of that call."""
        if self.side is None:
            return findings
        kept = [self._kept(item) for item in findings]
        return [item for item in kept if item is not None]

    def _kept(self, item: Finding) -> Finding | None:
        """Return a finding, or the same at the call that adds a difference of its own; None for one of a cast."""
        node = item.source
        if not self.carry(item.node):
            return item
        if node == NONE or self.carry(node) or not self._adds(node):
            return None
        slots = self._graph.slots[node]
        for slot in slots:
            if slot.is_input and slot.verdict == Verdict.ARGUMENT:
                return Finding(Kind.ARGUMENT, node, slot.place, why=item.why)
        is_backward = self._graph.parts(node).direction == BACKWARD
        kind = Kind.GRADIENT if is_backward else Kind.COMPUTATION
        hard = [slot.place for slot in slots if slot.is_hard]
        return Finding(kind, node, hard[0] if hard else "", why=item.why)

    def _adds(self, node: int) -> bool:
        """Return whether the outputs of a call are far more apart than its inputs."""
        given = self._apart([node], inputs=True)
        return self._apart([node], inputs=False) > _GROWN * given

    def differences(self) -> list[dict[str, Any]]:
        """Return where half enters, and by how much more the next values differ ("adds"): those that add most first."""
        if self.side is None:
            return []
        graph = self._graph
        found = []
        flow = graph.alignment.flows[self.side]
        for place, parts in enumerate(flow.parts):
            if not _is_call(parts):
                continue
            change = change_of(graph.dumps[self.side], flow.names[place])
            if change is not None and change.enters:
                adds = self._adds_after(flow, place)
                found.append({**change._asdict(), "side": "AB"[self.side], "adds": adds})
        return sorted(found, key=lambda item: -item["adds"])

    def _adds_after(self, flow: Flow, place: int) -> float:
        """Return how much more the values behind a cast differ than those before it."""
        graph = self._graph
        producers = [link.producer for link in flow.links[place] if link.producer >= 0]
        users = [user for user in flow.used_by.get(place, ()) if _is_call(flow.parts[user])]
        makers = [graph.node_of(flow, producer) for producer in producers]
        next_nodes = [graph.node_of(flow, user) for user in users]
        given = self._apart([graph.node_of(flow, place)], inputs=True)
        before = max(given, self._apart(makers, inputs=False))
        behind = self._apart(next_nodes, inputs=False)
        return max(behind - before, 0.0)

    def _apart(self, nodes: list[int], inputs: bool) -> float:
        """Return how far the inputs, or the outputs, of pairs are apart; 0.0 where they have no partner."""
        most = 0.0
        for node in nodes:
            for slot in self._graph.slots[node]:
                if slot.is_input is inputs:
                    most = max(most, slot.distance.rel_l2 or 0.0)
        return most


def _sizes(flow: Flow) -> set[int]:
    """Return the bytes of the dtypes of a dump."""
    return {size_of(dtype) for dtype in flow.dtypes} - {0}


def _has_other_sizes(slot: Slot) -> bool:
    return size_of(slot.a.get("dtype")) != size_of(slot.b.get("dtype"))


def _is_call(parts: EntryName) -> bool:
    return parts.kind == API and parts.direction == FORWARD
