# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Follows a gradient that one side lacks to the call at which it ends, such as ``stop_gradient``."""

from __future__ import annotations

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import BACKWARD
from probe.reading.dumps.values import Record, is_tensor

_MOST = 400  # so many places are looked at


def side_without(graph: Graph, node: int, slot: Slot | None) -> int | None:
    """Return which side lacks a gradient of a backward entry that the other has: 0 for A, 1 for B; None for none."""
    pair = graph.pairs[node]
    if NONE in (pair.a, pair.b):
        return int(pair.b == NONE)
    if slot is None or slot.verdict != Verdict.ONE_SIDE:
        return None
    return int(is_tensor(slot.a))


def has_gradient(record: Record) -> bool:
    """Return whether a tensor of this dtype may have a gradient: whole numbers and truth values have none.

    >>> has_gradient({"dtype": "Int64"}), has_gradient({"dtype": "BFloat16"}), has_gradient({})
    (False, True, True)
    """
    return not str(record.get("dtype")).startswith(("Int", "UInt", "Bool"))


def operand_of(graph: Graph, node: int, slot: Slot | None) -> tuple[int, list[str]]:
    """Return the forward of a backward entry, and which of its inputs lack a gradient; (-1, []) where it is unknown."""
    flow, place = graph.flow(node)
    forward = flow.forward_of(place)
    if forward is None or graph.parts(node).direction != BACKWARD:
        return NONE, []
    own = graph.node_of(flow, forward)
    inputs = [link.place for link in flow.links[forward] if has_gradient(link.record)]
    if slot is not None and slot.place.startswith("output."):
        wanted = f"input.{slot.place.partition('.')[2]}"
        inputs = [name for name in inputs if name == wanted or name.startswith(f"{wanted}.")]
    return own, inputs


def end_of(graph: Graph, node: int, slot: Slot | None) -> tuple[int, str]:
    """Return the call that only one side has and at which the gradient ends; (-1, "") where there is none.

    The way leads from the operand that lacks a gradient to the calls that made it, through all that lack one too. If
    it ends at one parameter alone, the call that uses it is returned, with the place of the parameter.
    """
    leaves: dict[tuple[str, str], tuple[int, str]] = {}
    own, inputs = operand_of(graph, node, slot)
    waiting = [(own, place) for place in inputs]
    seen = set(waiting)
    while waiting and len(seen) < _MOST:
        user, place = waiting.pop(0)
        producers = graph.producer_nodes(user, place)
        alone = graph.alone_producers(user, place)
        if alone:
            return alone[0], ""
        for link in graph.links(user, place):
            if link is not None and link.producer < 0 and link.parameter is not None:
                leaves.setdefault(link.parameter, (user, place))
        if producers[0] != producers[1] or producers[0] == NONE:
            continue
        sides = zip(graph.alignment.flows, graph.pairs[producers[0]][:2])
        if (
            len({side.backward_of(own) is None for side, own in sides}) == 1
        ):  # one side alone lacks its backward
            continue
        flow, made = graph.flow(producers[0])
        links = (link for link in flow.links[made] if has_gradient(link.record))
        more = [(producers[0], link.place) for link in links]
        waiting += [item for item in more if item not in seen]
        seen.update(more)
    return next(iter(leaves.values())) if len(leaves) == 1 else (NONE, "")
