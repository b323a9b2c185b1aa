# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Differences that a call only carries on, and kernels that round in another way.

Both need the noise of the net. Beside each tensor stands its excess: its distance by its noise. A call that carries a
difference on leaves the excess as it is. A call whose outputs have a larger excess than its inputs adds something of
its own. If all calls of its kind do so, by no more than the rounding of half precision, it is a kernel difference: HF32
in products of matrices, say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import NET_FACTOR
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict
from probe.reading.dumps.entry_name import BACKWARD, EntryName
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import NUMBERS
from probe.reading.dumps.values import is_tensor

#: a difference of kernels is at most so large: HF32 has ten bits
_MOST = 2e-3
#: calls of one kind differ by no more than this factor
_ALIKE = 8.0
#: the last outputs whose excess is asked
_RECENT = 17
#: so many calls of a kind have at least their typical difference
_COMMON = 0.8
_PRODUCTS = re.compile(
    r"(?i)\w*(matmul|conv\d|convolution|dense|linear|einsum)\w*|b?mm|addmm|baddbmm|mv|dot"
)


class Rounding(NamedTuple):
    """A kind of calls that round in another way."""

    kind: str
    calls: int
    rel_l2: float  # their typical difference


class Carried:
    """Judges the places of all calls again, with the excess of what went in."""

    def __init__(self, judged: JudgedPairs) -> None:
        self._judged = judged
        self._graph = Nodes(judged, judged.slots)
        self._kinds: dict[int, str] = {}  # call -> its kind
        self._first_backward = len(self._graph.pairs)
        for node in range(len(self._graph.pairs)):
            if self._graph.is_alone(node) or self._graph.is_container(node):
                continue
            parts = self._graph.parts(node)
            self._kinds[node] = _kind(parts)
            if parts.direction == BACKWARD:
                self._first_backward = min(self._first_backward, node)

    def judge(self) -> list[Rounding]:
        """Renew the verdicts, and return the kinds of calls that round in another way."""
        # each difference that a kernel may make is let through and noted
        first_walk = self._walk(None)
        first_walk.run()
        roundings: list[Rounding] = []
        for kind, jumps in first_walk.jumps.items():
            rounding = self._rounding(kind, median(jumps))
            if rounding is not None:
                roundings.append(rounding)
        allowed = {rounding.kind: _ALIKE * rounding.rel_l2 for rounding in roundings}
        self._judged.slots = self._walk(allowed).run()
        return roundings

    def _walk(self, allowed: Mapping[str, float] | None) -> _Walk:
        return _Walk(self._judged, self._graph, self._kinds, self._first_backward, allowed)

    def _rounding(self, kind: str, typical: float) -> Rounding | None:
        """Return a kind of calls as one that rounds in another way, if most of them differ as is typical."""
        calls = [node for node, own in self._kinds.items() if own == kind]
        sizes = [self._largest(node) for node in calls]
        alike = [size for size in sizes if size * _ALIKE >= typical]
        if len(sizes) < 2 or len(alike) < _COMMON * len(sizes):
            return None
        return Rounding(kind, len(sizes), typical)

    def _largest(self, node: int) -> float:
        """Return the largest distance of the outputs of a call."""
        sizes = [_size(slot) for slot in self._graph.outputs(node)]
        return max(sizes, default=0.0)


class _Walk:
    """One walk over all calls, in order.

    Args:
        judged: the pairs with their noise and tolerance.
        graph: the same pairs as nodes.
        kinds: call -> its kind.
        first_backward: the first node that is a backward.
        allowed: kind -> difference of its kernels, None for that of any.
    """

    def __init__(
        self,
        judged: JudgedPairs,
        graph: Nodes,
        kinds: Mapping[int, str],
        first_backward: int,
        allowed: Mapping[str, float] | None,
    ) -> None:
        self._graph = graph
        self._noise = judged.tolerances.net
        self._factor = NET_FACTOR * judged.tolerances.factor
        self._kinds = kinds
        self._first_backward = first_backward
        self._allowed = allowed
        #: kind -> the differences that its calls were seen to add
        self.jumps: dict[str, list[float]] = {}
        self._carried: set[object] = set()  # the contents that differ, and that a call may carry on
        self._excesses: list[float] = []
        self._worst = 1.0

    def run(self) -> list[list[Slot]]:
        """Return the places of all nodes with their verdicts."""
        renewed = list(self._graph.slots)
        for node in self._kinds:
            renewed[node] = self._call(node)
        for node, slots in enumerate(renewed):  # Cells: by what their calls have carried
            if node not in self._kinds:
                is_backward = self._graph.parts(node).direction == BACKWARD
                most = self._worst if is_backward else 0.0
                renewed[node] = [self._eased_carrier(node, slot, most) for slot in slots]
        return renewed

    def _call(self, node: int) -> list[Slot]:
        # gradients are sums whose terms nothing tells: they have the excess of any call before
        least = self._worst if node >= self._first_backward else 0.0
        slots = list(self._graph.slots[node])
        for number, slot in enumerate(slots):
            if slot.is_input:
                slots[number] = self._eased_carrier(node, slot, least)
        inputs = [slot for slot in slots if slot.is_input]
        if not HARD.isdisjoint([slot.verdict for slot in inputs]):
            return slots
        most = max(least, self._excess_of_inputs(node, inputs))
        outputs: dict[str, Slot] = {}
        for slot in slots:
            if not slot.is_input and is_tensor(slot.b):
                outputs[slot.place] = self._eased(node, slot, most)
        self._let_kernel_through(node, outputs)
        self._note(node, outputs)
        return [slot if slot.is_input else outputs.get(slot.place, slot) for slot in slots]

    def _note(self, node: int, outputs: Mapping[str, Slot]) -> None:
        """Note the excess of outputs, and the contents that differ by no more than may be carried on."""
        for slot in outputs.values():
            excess = self._excess(node, slot)
            if not slot.is_hard:
                self._excesses.append(excess)
            if slot.is_faint:
                self._carried.add(content_key(slot.b))
                self._worst = max(self._worst, excess)

    def _excess_of_inputs(self, node: int, inputs: list[Slot]) -> float:
        """Return the excess that a call was given.

        One sample again: an input may be near by chance, where those around it are not.
        """
        recent = self._excesses[-_RECENT:]
        usual = median(recent) if recent else 1.0
        given = [self._excess(node, slot) for slot in inputs if slot.is_faint]
        return max([1.0, usual, *given])

    def _let_kernel_through(self, node: int, outputs: dict[str, Slot]) -> None:
        """Let outputs be close that differ by no more than a kernel of their kind may."""
        differing = [slot for slot in outputs.values() if slot.verdict == Verdict.DIFFERS]
        over = [slot for slot in differing if self._excess(node, slot)]
        if not over:
            return
        kind = self._kinds[node]
        worst = max(over, key=_size)
        if self._allowed is None:
            limit = max(_MOST, 2 * of_dtype(worst.a.get("dtype")))
        else:
            limit = self._allowed.get(kind, 0.0)
        if _size(worst) <= limit:
            self.jumps.setdefault(kind, []).append(_size(worst))
            for slot in over:
                outputs[slot.place] = slot._replace(verdict=Verdict.CLOSE)

    def _eased_carrier(self, node: int, slot: Slot, most: float) -> Slot:
        """Return a place as close if its content was carried, or if it has no more than an excess that was given."""
        if slot.verdict == Verdict.DIFFERS and content_key(slot.b) in self._carried:
            return slot._replace(verdict=Verdict.CLOSE)
        return self._eased(node, slot, most)

    def _eased(self, node: int, slot: Slot, most: float) -> Slot:
        """Return a place as close if it has no more than an excess that was given."""
        if slot.verdict != Verdict.DIFFERS or slot.place.startswith(NUMBERS):
            return slot
        if 0.0 < self._excess(node, slot) <= self._factor * most:
            return slot._replace(verdict=Verdict.CLOSE)
        return slot

    def _excess(self, node: int, slot: Slot) -> float:
        """Return the distance of a place by its noise; 0 where its noise is not known."""
        flow_a, _ = self._graph.alignment.flows
        name = flow_a.names[self._graph.pairs[node].a]
        own = self._noise.get(f"{name}.{slot.place}", 0.0)
        return _size(slot) / own if own else 0.0


def _kind(parts: EntryName) -> str:
    own = "products of matrices" if _PRODUCTS.fullmatch(parts.api) else parts.api
    return f"{own} (backward)" if parts.direction == BACKWARD else own


def _size(slot: Slot) -> float:
    return slot.distance.rel_l2 or 0.0
