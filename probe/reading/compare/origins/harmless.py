# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Proves that a change changes no value: what it makes agrees in all bits, or nothing that differs depends on it."""

from __future__ import annotations

from probe.naming import written_inputs
from probe.reading.compare.dataflow.alone import alone_with
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.structure import moves_elements
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.values import is_tensor


def is_harmless(graph: Graph, node: int) -> bool:
    """Return whether a change is proved to be harmless, forward and backward.

    Calls that one side alone has are harmless if calls use their outputs, and none of these is given another value. A
    call that no recorded call follows may still be the result of the net. Of calls that feed each other either all are
    harmless, or none is.
    """
    if graph.is_alone(node):
        change = alone_with(graph, node)
        return all(_is_without_effect(graph, call) for call in change)
    if _has_effect(graph, node):
        return False
    if graph.is_update(node) and not _has_results(graph, node):
        return False
    made = graph.outputs(node)
    return all(_is_same(graph, node, slot) for slot in made) and _is_backward_same(graph, node)


def _has_results(graph: Graph, node: int) -> bool:
    """Return whether the results of an update are recorded."""
    return any(is_tensor(slot.a) and not slot.is_input for slot in graph.slots[node])


def _has_effect(graph: Graph, node: int) -> bool:
    return graph.off[node] or graph.tainted[node] or _writes(graph, node)


def _writes(graph: Graph, node: int) -> bool:
    names = [
        graph.alignment.flows[side].parts[place].key
        for side, place in enumerate(graph.pairs[node].places)
        if place != NONE
    ]
    return any(map(written_inputs, names))


def _is_without_effect(graph: Graph, node: int) -> bool:
    """Return whether no call that uses the outputs of a call differs, and no gradient at its inputs."""
    flow, place = graph.flow(node)
    if (
        not flow.used_by.get(place)
        or moves_elements(graph.parts(node).key)
        or _has_effect(graph, node)
    ):
        return False
    # also those of an equal output: it may be this one that they are given
    users = graph.users_of(node)
    makers = [link.producer for link in flow.links[place] if link.producer >= 0]
    backwards = [flow.backward_of(call) for call in (place, *makers)]
    # a gradient may end at a call whose output is its input
    gradients = [graph.node_of(flow, call) for call in backwards if call is not None]
    return not any(graph.off[other] or graph.tainted[other] for other in (*users, *gradients))


def _is_same(graph: Graph, node: int, slot: Slot) -> bool:
    """Return whether an output agrees in all bits, as far as the records tell."""
    if not is_tensor(slot.a) or slot.verdict == Verdict.BITS:
        return not slot.is_hard
    if slot.verdict != Verdict.NUMBERS_EQUAL:
        return False
    return not any(moves_elements(key) for key in _keys(graph, node))


def _keys(graph: Graph, node: int) -> list[str]:
    flow_a, flow_b = graph.alignment.flows
    pair = graph.pairs[node]
    return [flow_a.parts[pair.a].key, flow_b.parts[pair.b].key]


def _is_backward_same(graph: Graph, node: int) -> bool:
    """Return whether the backward of a call, if there is one, differs in nothing."""
    flow, place = graph.flow(node)
    backward = flow.backward_of(place)
    if backward is None:
        return True
    own = graph.node_of(flow, backward)
    return not graph.is_alone(own) and not graph.off[own]
