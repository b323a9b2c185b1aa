# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Differences that a call only carries on, and kernels that round in another way.

Both need the noise of the net. Beside each tensor stands its excess: its distance by its noise. A call that carries a
difference on leaves the excess as it is. A call whose outputs have a larger excess than its inputs adds something of
its own. If all calls of its kind do so, by no more than the rounding of half precision, it is a kernel difference: HF32
in products of matrices, say.
"""

from __future__ import annotations

import re
from statistics import median
from typing import NamedTuple

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.distances.tolerances import NET_FACTOR
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import FAINT, HARD, Slot, Verdict
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
        self._noise = judged.tolerances.net
        self._factor = NET_FACTOR * judged.tolerances.factor
        self._kinds: dict[int, str] = {}  # call -> its kind
        self._first = len(self._graph.pairs)  # the first backward
        for node in range(len(self._graph.pairs)):
            if self._graph.is_alone(node) or self._graph.is_container(node):
                continue
            parts = self._graph.parts(node)
            self._kinds[node] = _kind(parts)
            if parts.direction == BACKWARD:
                self._first = min(self._first, node)
        #: kind -> the differences that its calls were seen to add
        self._jumps: dict[str, list[float]] = {}

    def judge(self) -> list[Rounding]:
        """Renew the verdicts, and return the kinds of calls that round in another way."""
        self._walk(None)  # each difference that a kernel may make is let through and noted
        found: list[Rounding] = []
        for kind, seen in self._jumps.items():
            typical = median(seen)
            calls = [node for node, own in self._kinds.items() if own == kind]
            sizes = list(map(self._largest, calls))
            like = [size for size in sizes if size * _ALIKE >= typical]
            if len(sizes) > 1 and len(like) >= _COMMON * len(sizes):
                found.append(Rounding(kind, len(sizes), typical))
        allowed = {rounding.kind: _ALIKE * rounding.rel_l2 for rounding in found}
        self._judged.slots = self._walk(allowed)
        return found

    def _largest(self, node: int) -> float:
        """Return the largest distance of the outputs of a call."""
        made = [slot for slot in self._graph.slots[node] if not slot.is_input]
        return max(map(_size, made), default=0.0)

    def _walk(self, allowed: dict[str, float] | None) -> list[list[Slot]]:
        """Return the places of all calls; ``allowed``: kind -> difference of its kernels, None for that of any."""
        found = list(self._graph.slots)
        self._known: set[object] = set()
        self._excesses: list[float] = []
        self._worst = 1.0
        for node in self._kinds:
            found[node] = self._call(node, allowed)
        for node, slots in enumerate(found):  # Cells: by what their calls have carried
            if node not in self._kinds:
                is_backward = self._graph.parts(node).direction == BACKWARD
                most = self._worst if is_backward else 0.0
                found[node] = [self._eased(node, slot, most, True) for slot in slots]
        return found

    def _call(self, node: int, allowed: dict[str, float] | None) -> list[Slot]:
        # gradients are sums whose terms nothing tells: they have the excess of any call before
        least = self._worst if node >= self._first else 0.0
        slots = list(self._graph.slots[node])
        for number, slot in enumerate(slots):
            if slot.is_input:
                slots[number] = self._eased(node, slot, least, True)
        inputs = [slot for slot in slots if slot.is_input]
        if not HARD.isdisjoint([slot.verdict for slot in inputs]):
            return slots
        most = max(least, self._excess_of_inputs(node, inputs))
        made: dict[str, Slot] = {}
        for slot in slots:
            if not slot.is_input and is_tensor(slot.b):
                made[slot.place] = self._eased(node, slot, most)
        self._let_kernel_through(node, made, allowed)
        for slot in made.values():
            excess = self._excess(node, slot)
            if slot.verdict not in HARD:
                self._excesses.append(excess)
            if slot.verdict in FAINT:
                self._known.add(content_key(slot.b))
                self._worst = max(self._worst, excess)
        return [slot if slot.is_input else made.get(slot.place, slot) for slot in slots]

    def _excess_of_inputs(self, node: int, inputs: list[Slot]) -> float:
        """Return the excess that a call was given.

        One sample again: an input may be near by chance, where those around it are not.
        """
        usual = median(self._excesses[-_RECENT:] or [1.0])
        faint = [slot for slot in inputs if slot.verdict in FAINT]
        return max([1.0, usual, *(self._excess(node, slot) for slot in faint)])

    def _let_kernel_through(
        self, node: int, made: dict[str, Slot], allowed: dict[str, float] | None
    ) -> None:
        """Let outputs be close that differ by no more than a kernel of their kind may."""
        differing = [slot for slot in made.values() if slot.verdict == Verdict.DIFFERS]
        over = [slot for slot in differing if self._excess(node, slot)]
        if not over:
            return
        kind = self._kinds[node]
        worst = max(over, key=_size)
        if allowed is None:
            limit = max(_MOST, 2 * of_dtype(worst.a.get("dtype")))
        else:
            limit = allowed.get(kind, 0.0)
        if _size(worst) <= limit:
            self._jumps.setdefault(kind, []).append(_size(worst))
            for slot in over:
                made[slot.place] = slot._replace(verdict=Verdict.CLOSE)

    def _eased(self, node: int, slot: Slot, most: float, may_be_known: bool = False) -> Slot:
        """Return a place as close if its content was carried, or if it has no more than an excess that was given."""
        if slot.verdict != Verdict.DIFFERS:
            return slot
        is_known = may_be_known and content_key(slot.b) in self._known
        if is_known or self._is_within(node, slot, most):
            return slot._replace(verdict=Verdict.CLOSE)
        return slot

    def _is_within(self, node: int, slot: Slot, most: float) -> bool:
        if slot.place.startswith(NUMBERS):
            return False
        return 0.0 < self._excess(node, slot) <= self._factor * most

    def _excess(self, node: int, slot: Slot) -> float:
        names = self._graph.alignment.flows[0].names
        name = names[self._graph.pairs[node].a]
        own = self._noise.get(f"{name}.{slot.place}", 0.0)
        return _size(slot) / own if own else 0.0


def _kind(parts: EntryName) -> str:
    own = "products of matrices" if _PRODUCTS.fullmatch(parts.api) else parts.api
    return f"{own} (backward)" if parts.direction == BACKWARD else own


def _size(slot: Slot) -> float:
    return slot.distance.rel_l2 or 0.0
