# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The dataflow of two paired dumps: the possible causes of each difference.

A value is off where it differs beyond tolerance, or is missing on one side. A call is tainted if a cause of it is off
or tainted. Taint passes through a value that merely agrees in statistics, and ends at one whose bits agree.
"""

from __future__ import annotations

from collections.abc import Iterable

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.dataflow.structure import Structure
from probe.reading.compare.judging.verdicts import (
    BITS,
    HARD,
    NOT_COMBINED,
    NUMBERS_EQUAL,
    Slot,
)
from probe.reading.compare.pairing.alignment import NONE, Alignment, Pair
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import is_constant
from probe.reading.dumps.updates import NUMBERS

_PASSES = 12
#: a possible cause: a node, and the input through which it acts ("" for no single input)
Cause = tuple[int, str]


class Graph(Nodes):
    """The nodes and their causes.

    Attributes:
        off: whether a node has a value that is off.
        tainted: whether a cause of a node is off or tainted.
        structure: the structural differences.
        soft: the first node with a structural difference that this may follow from.
    """

    def __init__(
        self, alignment: Alignment, pairs: list[Pair], slots: list[list[Slot]], dumps: tuple[Dump, Dump]
    ) -> None:
        super().__init__(alignment, pairs, slots, dumps)
        self.off = [any(slot.verdict in HARD for slot in found) for found in slots]
        for node, pair in enumerate(pairs):
            self.off[node] = self.off[node] or self._lost_backward(pair)
        self._inside = self._find_inside()
        whole: list[Cause] = [(node, "") for node in range(len(pairs))]
        self.causes = [self._causes(node, whole) for node in range(len(pairs))]
        self.tainted = self._taint()
        self.structure = Structure(self)
        self.soft = self.structure.spread(self.causes)

    def _lost_backward(self, pair: Pair) -> bool:
        """Return whether this is a backward that the other side's paired forward does not have."""
        if (pair.a == NONE) == (pair.b == NONE):
            return False
        side = 0 if pair.b == NONE else 1
        flow, place = self.alignment.flows[side], pair.b if side else pair.a
        parts = flow.parts[place]
        if parts.kind == GRADIENT:
            own = flow.position.get(f"{parts.key}.{FORWARD}.0")
            return own is None or own in (self.alignment.b_of, self.alignment.a_of)[side]
        if parts.direction != BACKWARD or parts.kind not in (API, CELL):
            return False
        if (
            self.alignment.vocabulary.is_foreign and parts.kind == API
        ):  # frameworks differentiate other parts of a call by themselves
            return False
        forward = flow.forward_of(place)
        return forward is not None and forward in (self.alignment.b_of, self.alignment.a_of)[side]

    def _find_inside(self) -> dict[str, list[int]]:
        """Return the nodes in each Cell: by the Cell's entry, and backward ones also by the Cell's key."""
        found: dict[str, list[int]] = {}
        for side, flow in enumerate(self.alignment.flows):
            for place, cell in enumerate(flow.cells):
                parts = flow.parts[place]
                node = self._nodes[side][place]
                if cell is None and parts.kind in (API, CELL):
                    found.setdefault(f"{side} ", []).append(node)
                elif cell is not None:
                    found.setdefault(f"{side} {cell}", []).append(node)
                    if parts.direction == BACKWARD:
                        found.setdefault(f"{side} {cell.partition('.backward.')[0]}", []).append(node)
                if parts.kind == CELL and parts.direction == BACKWARD:
                    found.setdefault(f"{side} {parts.key}", []).append(node)
        return found

    def _causes(self, node: int, whole: list[Cause]) -> tuple[Cause, ...]:
        pair = self.pairs[node]
        found, other = (
            self._causes_in(side, place, node, whole) if place != NONE else [] for side, place in enumerate(pair[:2])
        )
        if other != found:
            found += other
        found.sort()
        return tuple(found)

    def _causes_in(self, side: int, place: int, node: int, whole: list[Cause]) -> list[Cause]:
        """Return the causes that the dataflow of one side tells."""
        found: list[Cause] = []
        flow, nodes = self.alignment.flows[side], self._nodes[side]
        parts = flow.parts[place]
        if parts.kind in (GRADIENT, CELL):
            inside = self._inside.get(f"{side} {parts.key if parts.kind == GRADIENT else flow.names[place]}", ())
            found += [whole[other] for other in inside if other != node]
        if parts.direction == FORWARD:
            found += [(nodes[link.producer], link.place) for link in flow.links[place] if link.producer >= 0]
        else:
            found += [whole[nodes[cause]] for cause in flow.backward_causes(place)]
        return found

    def _taint(self) -> list[bool]:
        first = next((node for node, off in enumerate(self.off) if off), len(self.pairs))
        last = len(self.pairs)
        update = next((node for node, off in enumerate(self.off) if off and self.is_update(node)), last)
        tainted = [
            (node > first and self._has_unknown_cause(node)) or (node > update and self._is_given_parameter(node))
            for node in range(last)
        ]
        for _ in range(_PASSES):
            changed = False
            for node, causes in enumerate(self.causes):
                if tainted[node]:
                    continue
                for cause, place in causes:
                    if (self.off[cause] or tainted[cause]) and not self._ends(node, place):
                        tainted[node] = changed = True
                        break
            if not changed:
                break
        return tainted

    def _has_unknown_cause(self, node: int) -> bool:
        """Return whether a value that is off has no known producer, but a possible one that is off."""
        if not self.off[node]:
            return False
        parts = self.parts(node)
        if self.is_update(node):  # its gradients and states may follow from anything before; its numbers do not
            hard = [slot for slot in self.slots[node] if slot.verdict in HARD and not slot.place.startswith(NUMBERS)]
            return bool(hard)
        if any(slot.verdict == NOT_COMBINED and slot.is_input for slot in self.slots[node]):
            return True
        if parts.direction == BACKWARD:  # a gradient that arrives is a sum, whose terms may come from anywhere before
            arrives = any(slot.verdict in HARD and slot.is_input for slot in self.slots[node])
            return arrives or self.is_container(node) or self._is_used_unseen(node)
        outside = [
            slot for slot in self.slots[node]
            if slot.is_input and slot.verdict in HARD and self.is_outside(node, slot.place)
        ]  # fmt: skip
        return bool(outside) and any(self.off[other] for other in self._earlier_in_cell(node))

    def _is_given_parameter(self, node: int) -> bool:
        """Return whether a value that is off may be a parameter, which an update before it has changed."""
        return self.off[node] and any(
            slot.is_input and slot.verdict in HARD and max(self.producer_nodes(node, slot.place)) == NONE
            for slot in self.slots[node]
        )

    def _is_used_unseen(self, node: int) -> bool:
        """Return whether no recorded call uses the forward of a backward, so that its gradient came from anywhere."""
        flow, place = self.flow(node)
        parts = flow.parts[place]
        forward = flow.forward_of(place)
        if parts.kind == GRADIENT:
            forward = flow.position.get(f"{parts.key}.{FORWARD}.0")
        return forward is not None and not flow.used_by.get(forward)

    def _earlier_in_cell(self, node: int) -> Iterable[int]:
        """Yield the nodes before this one in its Cell and the Cells around it."""
        flow, place = self.flow(node)
        side = int(flow is self.alignment.flows[1])
        cell = flow.cells[place]
        for _ in range(200):
            if cell is None:
                break
            yield from (other for other in self._inside.get(f"{side} {cell}", ()) if other < node)
            own = flow.position.get(cell)
            cell = flow.cells[own] if own is not None else None
        yield from (other for other in self._inside.get(f"{side} ", ()) if other < node)

    def _ends(self, node: int, place: str) -> bool:
        """Return whether taint ends at an input: its bits agree, or it is an equal integer or constant."""
        slot = self.slot(node, place) if place else None
        if slot is None or slot.verdict == BITS:
            return slot is not None
        if slot.verdict != NUMBERS_EQUAL:
            return False
        return str(slot.a.get("dtype")).startswith(("Int", "UInt", "Bool")) or is_constant(slot.a)
