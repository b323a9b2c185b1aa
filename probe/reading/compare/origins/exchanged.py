# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds calls with equal outputs that were exchanged: no value tells, but their gradients do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import BACKWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, tensors_in

#: so many calls with equal outputs are looked at
_MOST = 16


class Exchange(NamedTuple):
    """Two calls with equal outputs, whose gradients are exchanged."""

    one: int  # the node whose gradient differs
    other: int  # the node that has this gradient on the other side
    user: int  # the first call that is given one of the equal outputs
    place: str  # where: "input.0"


def exchange_of(graph: Graph, node: int, slot: Slot | None) -> Exchange | None:
    """Return the call that was exchanged with the forward of a backward, whose arriving gradient differs."""
    if slot is None or not slot.is_input or not slot.is_hard:
        return None
    if not slot.are_tensors:
        return None
    flow, place = graph.flow(node)
    forward = flow.forward_of(place)
    if forward is None:
        return None
    own = graph.node_of(flow, forward)
    for other in _with_equal_outputs(graph, own):
        arrived = _arrived(graph, other, slot.place)
        if arrived is not None and _are_near(slot.a, arrived.b) and _are_near(slot.b, arrived.a):
            user, at = _first_user(graph, own)
            if user != NONE:
                return Exchange(own, other, user, at)
    return None


def _with_equal_outputs(graph: Graph, own: int) -> Iterable[int]:
    """Return the paired forwards whose first outputs are those of a node, in A and in B."""
    wanted = _outputs(graph, own)
    if None in wanted:
        return []
    found = []
    for node, pair in enumerate(graph.pairs):
        is_other = node != own and pair.is_whole and graph.parts(node).direction != BACKWARD
        if is_other and not graph.is_container(node) and _outputs(graph, node) == wanted:
            found.append(node)
    return found[:_MOST]


def _outputs(graph: Graph, node: int) -> list[object]:
    """Return the content of the first output in A and in B."""
    keys: list[object] = []
    for side, place in enumerate(graph.pairs[node].places):
        made = tensors_in(graph.alignment.entry(side, place), "output") if place != NONE else []
        keys.append(content_key(made[0]) if made else None)
    return keys


def _arrived(graph: Graph, node: int, place: str) -> Slot | None:
    """Return the gradient that arrives at the backward of a forward."""
    flow, own = graph.flow(node)
    backward = flow.backward_of(own)
    slot = None if backward is None else graph.slot(graph.node_of(flow, backward), place)
    return slot if slot is not None and slot.are_tensors else None


def _are_near(a: Record, b: Record) -> bool:
    apart = distance(a, b).rel_l2
    return apart is not None and apart <= max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))


def _first_user(graph: Graph, own: int) -> tuple[int, str]:
    """Return the first call that is given the content of a node's output, and the place."""
    flow, _ = graph.flow(own)
    wanted = _outputs(graph, own)[graph.side(own)]
    for place, links in enumerate(flow.links):
        for link in links:
            user = graph.node_of(flow, place)
            if user > own and not graph.is_container(user) and content_key(link.record) == wanted:
                return user, link.place
    return NONE, ""
