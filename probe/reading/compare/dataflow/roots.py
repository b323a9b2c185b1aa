# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Roots: nodes whose difference is no other form of one thing, as it comes from outside of a region."""

from __future__ import annotations

from probe.naming import written_inputs
from probe.reading.compare.dataflow.agreement import has_equal
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.other_calls import has_other_maker, names_of_node
from probe.reading.compare.dataflow.users import Users
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.call_kinds import is_collective, is_random
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT, EntryName
from probe.reading.dumps.flow import MASK
from probe.reading.dumps.values import Record, is_tensor, tensors_in

_PARAMETERS = ("parameters.", "model_parameters.")
#: how the dtypes begin that have no gradient
_WITHOUT_GRADIENT = ("Bool", "Int", "UInt")


class Roots:
    """Finds the roots.

    Args:
        graph: the dataflow.
        users: the users of its calls.
        factor: by how much tolerances are multiplied.
    """

    def __init__(self, graph: Graph, users: Users, factor: float) -> None:
        self._graph = graph
        self._users = users
        self._factor = factor

    def has(self, node: int, region: set[int]) -> bool:
        """Return whether a difference of this node is no form: it comes from outside, is random, or is written."""
        graph = self._graph
        parts = graph.parts(node)
        if graph.is_update(node) or is_gradient(graph, node):
            return True
        if any(acts(one) for one in names_of_node(graph, node)):
            return True
        if parts.direction == BACKWARD:
            return self._is_lost(node)
        slots = graph.slots[node]
        return any(
            self._is_given_other(node, slot, region) or _has_two_dtypes(slot) for slot in slots
        )

    def _is_lost(self, node: int) -> bool:
        """Return whether one side lacks the backward of a call whose output it uses: the gradient ends there."""
        graph = self._graph
        if not graph.is_alone(node):
            return False
        flow, place = graph.flow(node)
        forward = flow.forward_of(place)
        if forward is None:
            return True
        other = 1 - graph.side(node)
        node_of_forward = graph.node_of(flow, forward)
        partner = graph.pairs[node_of_forward].places[other]
        if partner == NONE or not self._has_gradient(other, partner):
            return False
        if has_other_maker(graph, node_of_forward):
            return False  # partners by their names alone
        return bool(self._users.of(other, partner))

    def _has_gradient(self, side: int, place: int) -> bool:
        """Return whether a call may have a gradient: an output is neither a mask nor an integer."""
        made = tensors_in(self._graph.alignment.entry(side, place), "output")
        return not all(str(record.get("dtype")).startswith(_WITHOUT_GRADIENT) for record in made)

    def _is_given_other(self, node: int, slot: Slot, region: set[int]) -> bool:
        """Return whether an input is a parameter or a value from outside that differs.

        Of two calls that are another one, the region of the other side may be given the value elsewhere.
        """
        if not slot.is_input or not slot.is_hard:
            return False
        if slot.place.startswith(_PARAMETERS):
            return True
        if not self._graph.is_unmade(node, slot.place) or self._may_be_made(node, slot):
            return False
        if self._graph.pairs[node].how != REPLACED:
            return True
        return not all(
            has_equal(record, self._given_outside(other, region), self._factor)
            for record, other in ((slot.a, 1), (slot.b, 0))
            if is_tensor(record)
        )

    def _may_be_made(self, node: int, slot: Slot) -> bool:
        """Return whether recorded calls of both sides may have made the two values of an input."""
        places = self._graph.pairs[node].places
        return all(
            is_tensor(record) and self._users.may_be_made(side, places[side], record)
            for side, record in enumerate((slot.a, slot.b))
        )

    def _given_outside(self, side: int, region: set[int]) -> list[Record]:
        """Return the values that no recorded call made, and that a side gives to a region."""
        flow = self._graph.alignment.flows[side]
        places = [self._graph.pairs[node].places[side] for node in region]
        links = [link for place in places if place != NONE for link in flow.links[place]]
        return [link.record for link in links if link.producer < 0 and is_tensor(link.record)]


def _has_two_dtypes(slot: Slot) -> bool:
    """Return whether the sides compute in two dtypes: that is no form, and casts have an answer of their own.

    A mask in the place of a number is the output of another call.
    """
    if not slot.are_tensors:
        return False
    dtypes = {str(slot.a.get("dtype")), str(slot.b.get("dtype"))}
    return len(dtypes) > 1 and MASK not in dtypes


def acts(parts: EntryName) -> bool:
    """Return whether a call does more than to compute: it draws numbers, communicates, or writes an input."""
    return is_random(parts) or is_collective(parts) or bool(written_inputs(parts.key))


def is_gradient(graph: Graph, node: int) -> bool:
    """Return whether a node is the gradient of a parameter."""
    return graph.parts(node).kind == GRADIENT
