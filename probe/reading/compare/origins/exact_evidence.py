# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Changes whose effect is within the tolerance: all before a call agrees in bits, and it gives other bits.

The call or its argument is another one, or one side lacks it. No tolerance is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import EQUAL, FAINT, Slot
from probe.reading.compare.origins.undone import is_undone
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import content_key

#: so many calls in a row may be more on one side
_CHAIN = 16
#: Mean and Norm of equal values may be so far apart: they are summed in another order at another address
_SUMMED = 5e-7
#: two calls for one thing differ by less than this part of the tolerance
_ROUNDED = 0.2


def changed_calls(graph: Graph) -> Iterator[int]:
    """Yield the nodes that are another call, or have another argument or form, with equal inputs and other bits."""
    for node, pair in enumerate(graph.pairs):
        if graph.is_alone(node) or graph.soft[node] != node or graph.tainted[node]:
            continue
        if graph.parts(node).direction != FORWARD or graph.off[node] or graph.wirings(node):
            continue
        slots = [slot for slot in graph.slots[node] if slot.are_tensors]
        outputs = [slot for slot in slots if not slot.is_input]
        if pair.how == REPLACED and not any(map(_is_above_rounding, outputs)):
            continue
        given = {slot.verdict for slot in slots if slot.is_input}
        made = {slot.verdict for slot in outputs}
        if given and given <= EQUAL and not FAINT.isdisjoint(made):
            yield node


def _is_above_rounding(slot: Slot) -> bool:
    """Return whether outputs are farther apart than two calls for one thing, as einsum and matmul, leave them."""
    apart = slot.distance.rel_l2 or 0.0
    return apart > _ROUNDED * max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))


def inserted_calls(graph: Graph) -> Iterator[int]:
    """Yield the first of the calls that only one side has on the way of a value, and that give it other bits."""
    found: set[int] = set()
    for node in range(len(graph.pairs)):
        if graph.is_alone(node) or graph.is_container(node):
            continue
        if graph.parts(node).direction != FORWARD:
            continue
        for slot in graph.slots[node]:
            if slot.is_input and slot.is_faint and not _may_be_equal(slot):
                first = _inserted(graph, node, slot)
                if first != NONE and first not in found and not is_undone(graph, node, slot):
                    found.add(first)
                    yield first


def _may_be_equal(slot: Slot) -> bool:
    """Tell whether only sums over the values tell them apart, by no more than their own rounding."""
    if "md5" in slot.a or slot.distance.exact:
        return False
    return (slot.distance.rel_l2 or 0) <= _SUMMED


def _inserted(graph: Graph, node: int, slot: Slot) -> int:
    """Return the first of the calls of one side alone that make of the other side's value this one; -1 for none."""
    maker_a, _ = graph.producer_nodes(node, slot.place)
    alone = graph.alone_producers(node, slot.place)
    if len(alone) != 1 or graph.tainted[node]:
        return NONE
    call = alone[0]
    wanted = content_key(slot.b if call == maker_a else slot.a)
    if wanted is None:
        return NONE
    for _ in range(_CHAIN):
        flow, place = graph.flow(call)
        links = flow.links[place]
        if any(content_key(link.record) == wanted for link in links):
            return call
        makers = [graph.node_of(flow, link.producer) for link in links if link.producer >= 0]
        if len(makers) != 1 or not graph.is_alone(makers[0]):
            return NONE
        call = makers[0]
    return NONE
