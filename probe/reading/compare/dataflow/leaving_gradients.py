# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The gradients that leave a region of the dataflow: whether each is known to agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probe.reading.compare.dataflow.agreement import has_equal, is_known
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.users import content_of
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import BACKWARD
from probe.reading.dumps.flow import Link, tells
from probe.reading.dumps.values import Record, tensors


class LeavingGradients:
    """Looks at the gradients that leave regions.

    Args:
        graph: the dataflow.
        factor: by how much tolerances are multiplied.
        has_results: whether gradients of parameters, or updates, are recorded.
    """

    def __init__(self, graph: Graph, factor: float, has_results: bool) -> None:
        self._graph = graph
        self._factor = factor
        self._has_results = has_results

    def agree(self, region: set[int]) -> bool:
        """Return whether each gradient that leaves a region is known to agree: none of its receivers is off."""
        graph = self._graph
        backwards = [node for node in region if graph.parts(node).direction == BACKWARD]
        for node in backwards:
            for side in (0, 1):
                place = graph.pairs[node].places[side]
                forward = None if place == NONE else graph.alignment.flows[side].forward_of(place)
                if forward is None or graph.is_container(node):
                    continue
                links = graph.alignment.flows[side].links[forward]
                if not all(self._receives(side, link, region) for link in links):
                    return False
                if any(self._leaves_record(side, node, link, backwards) for link in links):
                    return False
        return True

    def _leaves_record(self, side: int, node: int, link: Link, backwards: list[int]) -> bool:
        """Return whether a value from outside gets a gradient that the other side does not give it.

        Zeros, and other values without a content of their own, may come from any call.
        """
        if link.producer >= 0 or link.parameter is not None or not tells(link.record):
            return False
        gradient = self._gradient_of(side, node, link)
        if gradient is None:
            return False
        others = list(self._gradients_outside(1 - side, link.record, backwards))
        return not has_equal(gradient, others, self._factor)

    def _gradient_of(self, side: int, node: int, link: Link) -> Record | None:
        """Return the gradient that a backward gives to an input of its forward; None where it gives none."""
        wanted = link.place.replace("input.", "output.", 1)
        entry = self._graph.alignment.entry(side, self._graph.pairs[node].places[side])
        return dict(tensors("output", entry.get("output"))).get(wanted)

    def _gradients_outside(
        self, side: int, value: Record, backwards: Sequence[int]
    ) -> Iterator[Record]:
        """Yield the gradients that a region gives to a value from outside: the operands may have changed places."""
        flow = self._graph.alignment.flows[side]
        for node in backwards:
            place = self._graph.pairs[node].places[side]
            forward = None if place == NONE else flow.forward_of(place)
            for link in () if forward is None else flow.links[forward]:
                is_outside = link.producer < 0 and link.parameter is None
                if is_outside and content_of(link.record) == content_of(value):
                    gradient = self._gradient_of(side, node, link)
                    if gradient is not None:
                        yield gradient

    def _receives(self, side: int, link: Link, region: set[int]) -> bool:
        """Return whether the gradient of an input goes to a call whose own gradients are known, or to no call."""
        graph = self._graph
        if link.producer < 0:
            # an agreeing gradient of a parameter is that of its entry, or of the update
            return link.parameter is None or self._has_results
        maker = graph.at[side][link.producer]
        backward = graph.alignment.flows[side].backward_of(link.producer)
        if maker in region or backward is None:
            return True
        slots = graph.slots[graph.at[side][backward]]
        if any(slot.is_hard for slot in slots if not slot.is_input):
            # it passes the difference on: to others of the region, or out of it
            return graph.at[side][backward] in region
        return all(is_known(slot) for slot in slots if slot.is_input)
