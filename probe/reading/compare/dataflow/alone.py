# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls that one side alone has, and of which one feeds the other: they are one change."""

from __future__ import annotations

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.dumps.entry_name import FORWARD

#: so many calls are one change at most
_MOST = 400


def alone_with(nodes: Nodes, node: int) -> list[int]:
    """Return a call that one side alone has, and those of the same change: all that are connected with it, in order."""
    flow, start = nodes.flow(node)
    own = nodes.at[nodes.side(node)]
    found = {node}
    waiting = [start]
    while waiting and len(found) < _MOST:
        place = waiting.pop()
        makers = [link.producer for link in flow.links[place] if link.producer >= 0]
        for near in (*makers, *flow.used_by.get(place, ())):
            other = own[near]
            if other not in found and is_alone_call(nodes, other):
                found.add(other)
                waiting.append(near)
    return sorted(found)


def is_alone_call(nodes: Nodes, node: int) -> bool:
    """Return whether a node is a forward call that one side alone has, and no Cell around others."""
    if not nodes.is_alone(node) or nodes.is_container(node):
        return False
    return nodes.parts(node).direction == FORWARD
