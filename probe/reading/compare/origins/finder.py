# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The places where differences begin: the minimal elements of the dataflow that differ, each with its kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.judge import HARD, OTHER_BITS, Slot
from probe.reading.compare.origins.origin import (
    ARGUMENT,
    CALLS,
    COMMUNICATION,
    COMPUTATION,
    DATA,
    GRADIENT_KIND,
    OUTSIDE,
    PARAMETER,
    RANDOM,
    WIRING,
    is_collective,
    is_random,
)
from probe.reading.compare.pairing.alignment import NONE, REPLACED
from probe.reading.entry_name import BACKWARD
from probe.reading.flow import content_key
from probe.reading.values import is_tensor

#: an output may differ by this many times the greatest difference of the inputs
_GROWN = 10.0
#: parameters that the forward changes, so that the optimizer does not
_MOVING = re.compile(r"(^|\.)moving_(mean|variance)$")


class Finding(NamedTuple):
    """One thing that differs at one place of a node.

    Attributes:
        kind: one of ``KINDS``.
        node: the node.
        place: the place of the call: "input.0"; "" for the call as a whole.
        parameter: (Cell entry, parameter) of a parameter, else None.
    """

    kind: str
    node: int
    place: str = ""
    parameter: tuple[str, str] | None = None


class OriginFinder:
    """Finds where differences begin.

    Args:
        graph: the dataflow.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def origins(self) -> list[Finding]:
        """Return the minimal elements that differ, in order."""
        graph = self._graph
        found: dict[tuple[Any, ...], Finding] = {}
        for node in range(len(graph.pairs)):
            if graph.off[node] and not graph.tainted[node]:
                for finding in self._classified(node):
                    found.setdefault(self._identity(finding), finding)
        return sorted(found.values(), key=lambda item: item.node)

    def later(self, most: int = 20) -> list[Finding]:
        """Return calls that follow from an origin by the dataflow, but give another output for inputs that agree."""
        graph = self._graph
        found: list[Finding] = []
        for node in range(len(graph.pairs)):
            if len(found) >= most:
                break
            if not graph.off[node] or not graph.tainted[node] or graph.is_container(node):
                continue
            parts = graph.parts(node)
            hard = [slot for slot in graph.slots[node] if slot.verdict in HARD]
            outside = [slot for slot in hard if slot.is_input and graph.is_outside(node, slot.place)]
            if parts.direction != BACKWARD and outside:
                found.append(Finding(OUTSIDE, node, outside[0].place))
            elif parts.direction != BACKWARD and hard and not any(slot.is_input for slot in hard):
                found.append(Finding(self._own_kind(node), node, hard[0].place))
        return found

    def soft(self) -> list[Finding]:
        """Return differences that may be harmless: calls on one side only, arguments, dtypes, wiring."""
        graph = self._graph
        return [self._soft_finding(node) for node in range(len(graph.pairs)) if graph.soft[node] == node]

    def _classified(self, node: int) -> Iterator[Finding]:
        graph = self._graph
        parts = graph.parts(node)
        hard = [slot for slot in graph.slots[node] if slot.verdict in HARD]
        if parts.direction == BACKWARD:
            source = self._soft_source(node)
            if source is not None or not hard or not self._is_carried(node, hard):
                yield source or Finding(GRADIENT_KIND, node, hard[0].place if hard else "")
            return
        inputs = [slot for slot in hard if slot.is_input]
        found = [self._input(node, slot) for slot in inputs]
        given = [item for item in found if item and not (item.parameter and _MOVING.search(item.parameter[1]))]
        if given:
            yield from given
        elif not inputs:
            outputs = [slot for slot in hard if not slot.is_input]
            source = self._soft_source(node)
            if source is not None or not outputs or not self._is_carried(node, outputs):
                yield source or Finding(self._own_kind(node), node, outputs[0].place if outputs else "")

    def _is_carried(self, node: int, outputs: list[Slot]) -> bool:
        """Return whether the differences of the inputs, though within tolerance, explain those of the outputs."""
        if any(slot.is_input for slot in outputs):
            return False
        given = max((slot.distance.rel_l2 or 0.0 for slot in self._graph.slots[node] if slot.is_input), default=0.0)
        return all((slot.distance.rel_l2 or 0.0) <= _GROWN * given for slot in outputs)

    def _input(self, node: int, slot: Slot) -> Finding | None:
        """Return why an input differs though no cause of the call does; None where it is not to be blamed."""
        graph = self._graph
        if slot.place.startswith("parameters."):
            if graph.is_container(node):
                return None
            return self._from_outside(node, slot)
        producers = graph.producer_nodes(node, slot.place)
        if producers[0] != producers[1]:
            alone = [producer for producer in producers if producer != NONE and NONE in graph.pairs[producer][:2]]
            return Finding(CALLS, alone[0]) if alone else Finding(WIRING, node, slot.place)
        if producers[0] != NONE:
            return self._soft_source(node) or Finding(COMPUTATION, producers[0])
        return self._from_outside(node, slot)

    def _from_outside(self, node: int, slot: Slot) -> Finding:
        """Return the kind of a value that no recorded call made: a parameter, data, or another value."""
        graph = self._graph
        if slot.place.startswith("parameters."):
            return Finding(PARAMETER, node, slot.place, (graph.name(node), slot.place.partition(".")[2]))
        links = graph.links(node, slot.place)
        parameter = next((link.parameter for link in (links[1], links[0]) if link and link.parameter), None)
        if parameter is not None:
            return Finding(PARAMETER, node, slot.place, parameter)
        return Finding(DATA if self._is_data(node, slot) else OUTSIDE, node, slot.place)

    def _is_data(self, node: int, slot: Slot) -> bool:
        """Return whether a value from outside is the batch: integers, or the input of the first call."""
        record = slot.b if is_tensor(slot.b) else slot.a
        if str(record.get("dtype") if is_tensor(record) else "").startswith(("Int", "UInt")):
            return True
        for other in range(node):
            flow, place = self._graph.flow(other)
            if flow.links[place] and not self._graph.is_container(other):
                return False
        return slot.place == "input.0"

    def _own_kind(self, node: int) -> str:
        graph = self._graph
        parts = graph.parts(node)
        if any(slot.verdict == "argument" for slot in graph.slots[node] if slot.is_input):
            return ARGUMENT
        if is_random(parts):
            return RANDOM
        return COMMUNICATION if is_collective(parts) else COMPUTATION

    def _soft_source(self, node: int) -> Finding | None:
        """Return the difference that a node follows from, though no value between them is off."""
        source = self._graph.soft[node]
        return None if source == NONE else self._soft_finding(source)

    def _soft_finding(self, node: int) -> Finding:
        graph = self._graph
        pair = graph.pairs[node]
        if NONE in (pair.a, pair.b) or pair.how == REPLACED:
            return Finding(CALLS, node)
        inputs = [slot for slot in graph.slots[node] if slot.is_input]
        for slot in inputs:
            if slot.verdict == OTHER_BITS and max(graph.producer_nodes(node, slot.place)) == NONE:
                return self._from_outside(node, slot)
        if argument := next((slot for slot in inputs if slot.verdict == "argument"), None):
            return Finding(ARGUMENT, node, argument.place)
        wirings = graph.wirings(node)
        if wirings:
            return Finding(WIRING, node, wirings[0])
        place = next((slot.place for slot in graph.slots[node] if is_tensor(slot.a)), "")
        return Finding(ARGUMENT, node, place)

    def _identity(self, finding: Finding) -> tuple[Any, ...]:
        """Return a key that findings of one cause share: a parameter, or a value that two calls are given."""
        if finding.parameter is not None:
            return finding.kind, finding.parameter
        slot = self._graph.slot(finding.node, finding.place) if finding.kind in (DATA, OUTSIDE) else None
        if slot is not None and is_tensor(slot.a) and is_tensor(slot.b):
            return finding.kind, content_key(slot.a), content_key(slot.b)
        return finding.kind, finding.node, finding.place
