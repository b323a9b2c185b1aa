# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One thing that differs at one place; and the findings that another one explains."""

from __future__ import annotations

from typing import NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.origins import table
from probe.reading.compare.origins.origin import Kind
from probe.reading.compare.pairing.partners import NONE, REPLACED

#: so many calls in a part of the net may be more on one side
_PART = 400
_LACKS = frozenset((table.LACKING.why, table.MISSING.why))


class Finding(NamedTuple):
    """One thing that differs at one place of a node."""

    kind: str  # a ``Kind``
    node: int
    place: str = ""  # the place of the call: "input.0"; "" for the call as a whole
    parameter: tuple[str, str] | None = None  # (Cell entry, parameter) of a parameter, else None
    why: str = ""  # the rule of the table that fired
    #: the node where the difference was seen, if that is another one; -1 for none
    source: int = NONE


def without_followers(graph: Graph, findings: list[Finding]) -> list[Finding]:
    """Leave out findings that another one of them explains.

    Of calls that one side lacks the last is named, which gives the value, and not the first. If they feed a call that
    another one has replaced, that one is named. A parameter that the optimizer lacks moves the other gradients in a
    list, as ``clip_by_global_norm`` is given it.
    """
    ends = {item.node for item in findings if item.why == table.MADE_ALONE.why}
    replaced = {
        item.node
        for item in findings
        if item.kind == Kind.CALLS and graph.pairs[item.node].how == REPLACED
    }
    lacking = max((item.node for item in findings if item.why in _LACKS), default=NONE)
    kept = []
    for item in findings:
        is_in_list = item.place.count(".") > 1
        if item.kind == Kind.WIRING and is_in_list and item.node < lacking:
            continue
        if item.why == table.EARLIER_CHANGE and ends & alone_after(graph, item.node):
            continue
        if item.kind == Kind.CALLS and replaced & _fed(graph, item.node):
            continue  # the call behind it is told, which another one has replaced
        kept.append(item)
    return kept


def _fed(graph: Graph, node: int) -> set[int]:
    """Return the calls that use a call which one side lacks, or one behind it that this side lacks too."""
    if not graph.is_alone(node):
        return set()
    found: set[int] = set()
    for call in (node, *alone_after(graph, node)):
        flow, place = graph.flow(call)
        found.update(graph.node_of(flow, user) for user in flow.used_by.get(place, ()))
    return found


def alone_after(graph: Graph, node: int) -> set[int]:
    """Return the calls that only one side has, and that follow from one such call; {} where it has a partner."""
    if not graph.is_alone(node):
        return set()
    flow, place = graph.flow(node)
    found = {node}
    waiting = [place]
    while waiting and len(found) < _PART:
        for user in flow.used_by.get(waiting.pop(), ()):
            after = graph.node_of(flow, user)
            if graph.is_alone(after) and after not in found:
                found.add(after)
                waiting.append(user)
    return found - {node}
