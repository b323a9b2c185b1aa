# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Regions of the dataflow that compute one thing in another form, or in another order.

A region holds calls that differ, and that follow from each other. It is a reformulation if some of its calls have no
partner or another producer, and each value that leaves it agrees, forward and backward. One value that does not agree
makes the whole region a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.leaving_gradients import LeavingGradients
from probe.reading.compare.dataflow.leaving_values import LeavingValues
from probe.reading.compare.dataflow.other_calls import is_other_call, is_replaced, names_of_node
from probe.reading.compare.dataflow.regions import MOST, Regions
from probe.reading.compare.dataflow.roots import Roots, is_gradient
from probe.reading.compare.dataflow.structure import moves_elements
from probe.reading.compare.dataflow.users import Users
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD
from probe.reading.dumps.flow import Flow


class Form(NamedTuple):
    """A region that computes one thing in two forms."""

    #: side -> the places of its entries
    places: tuple[frozenset[int], frozenset[int]]
    leaving: int  # how many values leave it
    rel_l2: float  # the greatest distance of these values


class Reformulations:
    """Finds the regions of two dumps that are reformulations."""

    def __init__(self, judged: JudgedPairs) -> None:
        self.graph = graph = Graph(judged)
        self.factor = factor = judged.tolerances.factor  # by how much tolerances are multiplied
        self.users = users = Users(graph.alignment)
        nodes = range(len(graph.pairs))
        results = [node for node in nodes if graph.is_update(node) or is_gradient(graph, node)]
        #: whether all gradients of parameters and all updates agree
        self.is_settled = not any(graph.off[node] for node in results)
        self.gradients = LeavingGradients(graph, factor, has_results=bool(results))
        self._values = LeavingValues(graph, users, factor)
        self._roots = Roots(graph, users, factor)

    def find(self) -> list[Form]:
        """Return the regions of a settled comparison, in order.

        Equal statistics are no proof for a region that puts elements in other places. Such a region counts only where
        nothing else differs.
        """
        graph = self.graph
        nodes = range(len(graph.pairs))
        off = {node for node in nodes if graph.off[node]}
        replaced = {node for node in nodes if is_replaced(graph, node)}
        regions = Regions(graph, self.users, off | replaced)
        found: list[tuple[set[int], Form]] = []
        seen: set[int] = set()
        for node in sorted(off):
            if node in seen:
                continue
            region = regions.around(node)
            seen |= region
            form = self._form(region)
            if form is not None:
                found.append((region, form))
        is_all = off <= set().union(*(region for region, _ in found))
        return [form for region, form in found if is_all or not self._moves(region)]

    def _moves(self, region: set[int]) -> bool:
        """Return whether a call of a region, which the other side has not, may put elements in other places."""
        graph = self.graph
        others = [node for node in region if is_replaced(graph, node)]
        names = (parts for node in others for parts in names_of_node(graph, node))
        return any(moves_elements(parts.key) for parts in names)

    def _form(self, region: set[int]) -> Form | None:
        """Return a region as a reformulation; None where it is none, or that cannot be known."""
        if len(region) > MOST or any(self._roots.has(node, region) for node in region):
            return None
        if not any(is_other_call(self.graph, node) for node in region):
            return None  # the calls are the same: one of them computes another value
        leaving = self._values.find(region)
        if not leaving or not self.gradients.agree(region):
            return None
        is_one_number = max(value.size for value in leaving) == 1
        if is_one_number and not (self._has_backward(region) or self._is_reordered(region)):
            return None  # one number, such as a mean, agrees of other values too
        every = region.union(self._forwards(region))
        places_a, places_b = (
            frozenset(self.graph.pairs[node].places[side] for node in every) - {NONE}
            for side in (0, 1)
        )
        return Form((places_a, places_b), len(leaving), max(value.apart for value in leaving))

    def _forwards(self, region: set[int]) -> Iterator[int]:
        """Yield the forward of each backward of a region."""
        for node in region:
            flow, place = self.graph.flow(node)
            forward = flow.forward_of(place) if _is_backward(flow, place) else None
            if forward is not None:
                yield self.graph.node_of(flow, forward)

    def _is_reordered(self, region: set[int]) -> bool:
        """Return whether both sides do the same operations with the same values, in another order."""
        work_a, work_b = (self._work(side, region) for side in (0, 1))
        return work_a is not None and work_a == work_b

    def _work(self, side: int, region: set[int]) -> tuple[Counter[str], Counter[int]] | None:
        """Return the operations of a region, and the nodes that it has values from; None if these are not known."""
        flow = self.graph.alignment.flows[side]
        operations: Counter[str] = Counter()
        makers: Counter[int] = Counter()
        for node in region:
            place = self.graph.pairs[node].places[side]
            if place == NONE or _is_backward(flow, place):
                continue
            operations[flow.parts[place].key] += 1
            for link in flow.links[place]:
                if link.producer < 0:
                    return None
                maker = self.graph.at[side][link.producer]
                if maker not in region:
                    makers[maker] += 1
        return operations, makers

    def _has_backward(self, region: set[int]) -> bool:
        return any(self.graph.parts(node).direction == BACKWARD for node in region)


def _is_backward(flow: Flow, place: int) -> bool:
    return flow.parts[place].direction == BACKWARD


def names_of(graph: Graph, side: int, places: Iterable[int]) -> list[str]:
    """Return the names of the calls of APIs among some places."""
    flow = graph.alignment.flows[side]
    own = [place for place in sorted(places) if flow.parts[place].direction == FORWARD]
    return [flow.names[place] for place in own if flow.parts[place].kind == API]
