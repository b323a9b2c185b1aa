# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes whose effect is within the tolerance, and that exact evidence proves.

Everything before such a call agrees in bits, and the call or its argument is another one. No tolerance is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import FAINT, Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE, REPLACED
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import is_tensor

#: so many calls in a row may be more on one side, and so many in a part of the net
_CHAIN, _PART = 16, 400
#: Mean and Norm of equal values may be so far apart: they are summed in another order at another address
_SUMMED = 5e-7
#: two calls for one thing, as einsum and matmul, differ by less than this part of the tolerance
_ROUNDED = 0.2
_EQUAL = frozenset((Verdict.BITS, Verdict.NUMBERS_EQUAL))


def changed_calls(graph: Graph) -> Iterator[int]:
    """Yield the nodes that are another call, or have another argument or form, with equal inputs and other bits."""
    for node, pair in enumerate(graph.pairs):
        if graph.is_alone(node) or graph.soft[node] != node or graph.tainted[node]:
            continue
        if graph.parts(node).direction != FORWARD or graph.off[node] or graph.wirings(node):
            continue
        slots = [slot for slot in graph.slots[node] if is_tensor(slot.a) and is_tensor(slot.b)]
        given = {slot.verdict for slot in slots if slot.is_input}
        made = [slot for slot in slots if not slot.is_input]
        above = any((slot.distance.rel_l2 or 0.0) > _ROUNDED * of_dtype(slot.a.get("dtype")) for slot in made)
        if pair.how == REPLACED and not above:
            continue
        if given and given <= _EQUAL and not FAINT.isdisjoint(slot.verdict for slot in made):
            yield node


def inserted_calls(graph: Graph) -> Iterator[int]:
    """Yield the first of the calls that only one side has on the way of a value, and that give it other bits."""
    found: set[int] = set()
    for node in range(len(graph.pairs)):
        if graph.is_alone(node) or graph.parts(node).direction != FORWARD or graph.is_container(node):
            continue
        for slot in graph.slots[node]:
            if slot.is_input and slot.verdict in FAINT and not _may_be_equal(slot):
                first = _inserted(graph, node, slot)
                if first not in (NONE, *found):
                    found.add(first)
                    yield first


def _may_be_equal(slot: Slot) -> bool:
    """Tell whether only sums over the values tell them apart, by no more than their own rounding."""
    return "md5" not in slot.a and not slot.distance.exact and (slot.distance.rel_l2 or 0) <= _SUMMED


def _inserted(graph: Graph, node: int, slot: Slot) -> int:
    """Return the first of the calls of one side alone that make of the other side's value this one; -1 for none."""
    producers = graph.producer_nodes(node, slot.place)
    alone = graph.alone_producers(node, slot.place)
    if len(alone) != 1 or graph.tainted[node]:
        return NONE
    place = alone[0]
    wanted = content_key(slot.b if place == producers[0] else slot.a)
    for _ in range(_CHAIN if wanted is not None else 0):
        flow, own = graph.flow(place)
        if any(content_key(link.record) == wanted for link in flow.links[own]):
            return place
        makers = [graph.node_of(flow, link.producer) for link in flow.links[own] if link.producer >= 0]
        if len(makers) != 1 or not graph.is_alone(makers[0]):
            break
        place = makers[0]
    return NONE


def alone_after(graph: Graph, node: int) -> set[int]:
    """Return the calls that only one side has, and that follow from one such call; {} where it has a partner."""
    if not graph.is_alone(node):
        return set()
    flow, place = graph.flow(node)
    found, waiting = {node}, [place]
    while waiting and len(found) < _PART:
        for user in flow.used_by.get(waiting.pop(), ()):
            after = graph.node_of(flow, user)
            if graph.is_alone(after) and after not in found:
                found.add(after)
                waiting.append(user)
    return found - {node}
