# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls of one node that are another one on the other side: by name, by an argument, by the makers of their inputs."""

from __future__ import annotations

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Verdict
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.entry_name import FORWARD, EntryName


def is_other_call(graph: Graph, node: int) -> bool:
    """Return whether a call is another one: by its name, an argument, or the calls that its inputs come from."""
    if is_replaced(graph, node):
        return True
    if graph.parts(node).direction != FORWARD or graph.is_container(node):
        return False
    given = [slot.verdict for slot in graph.inputs(node)]
    return Verdict.ARGUMENT in given or has_other_maker(graph, node)


def is_replaced(graph: Graph, node: int) -> bool:
    """Return whether a call has no partner, or one of another name."""
    if graph.parts(node).direction != FORWARD or graph.is_container(node):
        return False
    return graph.is_alone(node) or graph.pairs[node].how == REPLACED


def has_other_maker(graph: Graph, node: int) -> bool:
    """Return whether an input that differs comes from calls that are no partners, or is another output of one."""
    for slot in graph.slots[node]:
        if slot.is_input and slot.is_hard:
            maker_a, maker_b = graph.producer_nodes(node, slot.place)
            if maker_a != maker_b or graph.uses_other_output(node, slot.place):
                return True
    return False


def names_of_node(graph: Graph, node: int) -> list[EntryName]:
    """Return the names of a node on both sides, taken apart."""
    flow_a, flow_b = graph.alignment.flows
    pair = graph.pairs[node]
    sides = ((flow_a, pair.a), (flow_b, pair.b))
    return [flow.parts[place] for flow, place in sides if place != NONE]
