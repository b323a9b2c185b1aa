# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which nodes are off, and which of them may only follow from others that are: they are tainted.

A value is off where it differs beyond tolerance, or is missing on one side. A call is tainted if a cause of it is off
or tainted. Taint passes through a value that merely agrees in statistics, and ends at one whose bits agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from probe.reading.compare.dataflow.causes import Cause, Causes
from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.judging.verdicts import HARD, Verdict
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import is_constant
from probe.reading.dumps.updates import NUMBERS

#: walks over all nodes; one is enough where all causes stand before their effects
PASSES = 12
#: dtypes whose equal numbers are equal tensors; those of a mask are its greatest and least element alone
_WHOLE_NUMBERS = ("Int", "UInt")


class Taint:
    """The nodes that are off, and those that are tainted."""

    def __init__(self, nodes: Nodes, causes: Causes) -> None:
        self._nodes = nodes
        self._causes = causes
        #: for each node whether it is off
        self.off = [self._is_off(node) for node in range(len(nodes.pairs))]
        #: for each node whether it is tainted
        self.tainted = self._begin()
        for _ in range(PASSES):
            if not self._pass():
                break

    def _is_off(self, node: int) -> bool:
        nodes = self._nodes
        verdicts = [slot.verdict for slot in nodes.slots[node]]
        if not HARD.isdisjoint(verdicts):
            return True
        return nodes.is_alone(node) and self._is_lost_backward(node)

    def _is_lost_backward(self, node: int) -> bool:
        """Return whether this is a backward that the other side's paired forward does not have."""
        nodes = self._nodes
        flow, place = nodes.flow(node)
        parts = flow.parts[place]
        partners = nodes.alignment.partners(nodes.side(node))
        if parts.kind == GRADIENT:
            forward = flow.position.get(f"{parts.key}.{FORWARD}.0")
            return forward is None or forward in partners
        if parts.direction != BACKWARD or parts.kind not in (API, CELL):
            return False
        if nodes.is_foreign and parts.kind == API:
            return False  # frameworks differentiate other parts of a call by themselves
        return flow.forward_of(place) in partners

    def _begin(self) -> list[bool]:
        """Return the nodes that are tainted though no cause of theirs is known."""
        nodes = self._nodes
        count = len(nodes.pairs)
        off = [node for node, is_off in enumerate(self.off) if is_off]
        first = next(iter(off), count)
        update = next(filter(nodes.is_update, off), count)
        tainted = [False] * count
        for node in off:
            is_behind = node > first and self._has_unknown_cause(node)
            is_of_update = node > update and self._is_given_parameter(node)
            tainted[node] = is_behind or is_of_update
        return tainted

    def _pass(self) -> bool:
        """Let the nodes be tainted whose causes are off or tainted; return whether there was one."""
        is_changed = False
        for node, causes in enumerate(self._causes.of):
            if not self.tainted[node] and self._follows(node, causes):
                self.tainted[node] = True
                is_changed = True
        return is_changed

    def _follows(self, node: int, causes: Sequence[Cause]) -> bool:
        for cause, place in causes:
            is_wrong = self.off[cause] or self.tainted[cause]
            if is_wrong and not self._ends(node, place):
                return True
        return False

    def _ends(self, node: int, place: str) -> bool:
        """Return whether taint ends at an input: its bits agree, or it is an equal integer or constant."""
        slot = self._nodes.slot(node, place) if place else None
        if slot is None:
            return False
        if slot.verdict == Verdict.BITS:
            return True
        if slot.verdict != Verdict.NUMBERS_EQUAL:
            return False
        dtype = str(slot.a.get("dtype"))
        return dtype.startswith(_WHOLE_NUMBERS) or is_constant(slot.a)

    def _has_unknown_cause(self, node: int) -> bool:
        """Return whether a value that is off has no known producer, but a possible one that is off."""
        nodes = self._nodes
        slots = nodes.slots[node]
        if nodes.is_update(node):
            # its gradients and states may follow from anything before; its numbers do not
            hard = [slot.place for slot in slots if slot.is_hard]
            return not all(place.startswith(NUMBERS) for place in hard)
        inputs = [slot for slot in slots if slot.is_input]
        if Verdict.NOT_COMBINED in [slot.verdict for slot in inputs]:
            return True
        hard = [slot.place for slot in inputs if slot.is_hard]
        if nodes.parts(node).direction == BACKWARD:
            # a gradient that arrives is a sum; its terms may come from anywhere
            return bool(hard) or nodes.is_container(node) or self._is_used_unseen(node)
        if not any(nodes.is_outside(node, place) for place in hard):
            return False
        return any(self.off[other] for other in self._causes.earlier_in_cell(node))

    def _is_given_parameter(self, node: int) -> bool:
        """Return whether a value that is off may be a parameter, which an update before it has changed."""
        hard = [slot.place for slot in self._nodes.inputs(node) if slot.is_hard]
        return any(self._nodes.is_unmade(node, place) for place in hard)

    def _is_used_unseen(self, node: int) -> bool:
        """Return whether no recorded call uses the forward of a backward, so that its gradient came from anywhere."""
        flow, place = self._nodes.flow(node)
        parts = flow.parts[place]
        if parts.kind == GRADIENT:
            forward = flow.position.get(f"{parts.key}.{FORWARD}.0")
        else:
            forward = flow.forward_of(place)
        return forward is not None and not flow.used_by.get(forward)
