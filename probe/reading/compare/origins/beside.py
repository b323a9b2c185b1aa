# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The changes that are told beside origins: none of them is a part of an origin, and each is told once."""

from __future__ import annotations

from collections.abc import Iterable

from probe.reading.compare.dataflow.alone import alone_with, is_alone_call
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.origins.finding import Finding
from probe.reading.compare.pairing.partners import REPLACED


def changes_beside(graph: Graph, changes: Iterable[Finding], told: Iterable[int]) -> list[Finding]:
    """Return the changes whose nodes are not told; of calls that feed each other and that one side lacks the first."""
    seen: set[int] = set()
    for node in told:
        seen.update(_change(graph, node))
        seen.update(_feeding(graph, node))
    kept: list[Finding] = []
    for change in changes:
        if change.node not in seen:
            seen.update(_change(graph, change.node))
            kept.append(change)
    return kept


def _feeding(graph: Graph, node: int) -> list[int]:
    """Return the calls that one side alone has, and that feed a call in the place of another one."""
    if graph.pairs[node].how != REPLACED:
        return []
    found: list[int] = []
    for slot in graph.slots[node]:
        for maker in graph.alone_producers(node, slot.place) if slot.is_input else ():
            found += _change(graph, maker)
    return found


def _change(graph: Graph, node: int) -> list[int]:
    return alone_with(graph, node) if is_alone_call(graph, node) else [node]
