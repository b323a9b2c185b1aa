# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Differences that a call only carries on, and kernels that round in another way, by the noise of the net.

Beside each tensor stands its excess: its distance by its noise. A call that carries a difference on leaves the excess
as it is. A call whose outputs have a larger excess than its inputs adds something of its own. If all calls of its kind
do so, by no more than the rounding of half precision, it is a kernel difference: HF32 in products of matrices, say.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.net_noise import NET_FACTOR, NetNoise
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import FAINT, HARD, Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import BACKWARD
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
    r"\w*(matmul|conv\d|convolution|dense|linear|einsum)\w*|b?mm|addmm|baddbmm|mv|dot", re.IGNORECASE
)


class KernelDifference(NamedTuple):
    """A kind of calls that rounds in another way on one side."""

    kind: str  # an API such as "softmax", or "products of matrices"
    calls: int
    rel_l2: float  # the typical distance of their outputs


class _Jump(NamedTuple):
    """A call that adds a difference of its own."""

    kind: str
    rel_l2: float
    excess: float


class Carried:
    """Judges the places of all calls again, with the excess of what went in."""

    def __init__(self, graph: Graph, noise: NetNoise, factor: float) -> None:
        self._graph, self._noise, self._factor = graph, noise, NET_FACTOR * factor
        self._known: dict[Any, float] = {}  # content in B -> its excess, where it was carried
        self._worst, self._is_after = 1.0, False  # the greatest excess so far; a backward was seen
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._jumps: list[_Jump] = []

    def judged(self) -> tuple[list[list[Slot]], list[KernelDifference]]:
        """Return the places of all calls with their new verdicts, and the kernels that round in another way."""
        self._pass(None)
        found = self._common()
        return self._pass({item.kind: item.rel_l2 for item in found}), found

    def _pass(self, allowed: dict[str, float] | None) -> list[list[Slot]]:
        """Judge once: with None, each jump that a kernel may make is let through and noted."""
        graph = self._graph
        self._known, self._worst, self._is_after = {}, 1.0, False
        self._recent.clear()
        slots = list(graph.slots)
        own = [node for node in range(len(slots)) if not graph.is_container(node) and NONE not in graph.pairs[node][:2]]
        for node in own:
            self._is_after |= graph.parts(node).direction == BACKWARD
            slots[node] = self._of_call(node, allowed)
        for node in set(range(len(slots))) - set(own):
            slots[node] = [self._if_known(slot) for slot in slots[node]]
            if slots[node] and graph.parts(node).direction == BACKWARD:
                slots[node] = [self._if_within(node, slot, self._worst) for slot in slots[node]]
        return slots

    def _if_known(self, slot: Slot) -> Slot:
        is_known = slot.verdict == Verdict.DIFFERS and content_key(slot.b) in self._known
        return slot._replace(verdict=Verdict.CLOSE) if is_known else slot

    def _of_call(self, node: int, allowed: dict[str, float] | None) -> list[Slot]:
        found = [self._if_known(slot) if slot.is_input else slot for slot in self._graph.slots[node]]
        if self._is_after:  # gradients are sums whose terms nothing tells: they have the excess of any call before
            found = [self._if_within(node, slot, self._worst) if slot.is_input else slot for slot in found]
        inputs = [slot for slot in found if slot.is_input]
        if any(slot.verdict in HARD for slot in inputs):
            return found
        # one sample again: an input may be near by chance, where those around it are not
        usual = median(self._recent) if self._recent else 1.0
        given = max([1.0, usual, *(self._excess(node, slot) for slot in inputs if slot.verdict in FAINT)])
        given = max(given, self._worst) if self._is_after else given
        outputs = [slot for slot in found if not slot.is_input and is_tensor(slot.b)]
        made = [self._if_within(node, slot, given) for slot in outputs]
        over = [slot for slot in made if slot.verdict == Verdict.DIFFERS and self._noise_of(node, slot)]
        if over and self._is_let_through(node, over, allowed):
            made = [slot._replace(verdict=Verdict.CLOSE) if slot in over else slot for slot in made]
        for slot in made:
            excess = self._excess(node, slot)
            if slot.verdict not in HARD and self._noise_of(node, slot):
                self._recent.append(excess)
            if slot.verdict in FAINT:
                self._known[content_key(slot.b)] = excess
                self._worst = max(self._worst, excess)
        renewed = {slot.place: slot for slot in made}
        return [renewed.get(slot.place, slot) if not slot.is_input else slot for slot in found]

    def _if_within(self, node: int, slot: Slot, excess: float) -> Slot:
        """Return a place as close if it has no more than an excess that was given."""
        if slot.verdict != Verdict.DIFFERS or slot.place.startswith(NUMBERS):
            return slot
        most = self._factor * excess * self._noise_of(node, slot)
        return slot._replace(verdict=Verdict.CLOSE) if (slot.distance.rel_l2 or 0.0) <= most else slot

    def _is_let_through(self, node: int, over: list[Slot], allowed: dict[str, float] | None) -> bool:
        kind, worst = self._kind(node), max(over, key=lambda slot: slot.distance.rel_l2 or 0.0)
        size, most = worst.distance.rel_l2 or 0.0, max(_MOST, 2 * of_dtype(worst.a.get("dtype")))
        if allowed is None and size <= most:
            self._jumps.append(_Jump(kind, size, self._excess(node, worst)))
        return size <= (most if allowed is None else _ALIKE * allowed.get(kind, 0.0))

    def _common(self) -> list[KernelDifference]:
        """Return the kinds of which nearly all calls have the difference that some of them were seen to add."""
        found = []
        for kind in dict.fromkeys(jump.kind for jump in self._jumps):
            typical = median(jump.rel_l2 for jump in self._jumps if jump.kind == kind)
            sizes = [self._size(node) for node in self._of_kind(kind)]
            alike = sum(size * _ALIKE >= typical for size in sizes)
            if len(sizes) > 1 and alike >= _COMMON * len(sizes):
                found.append(KernelDifference(kind, len(sizes), typical))
        return found

    def _of_kind(self, kind: str) -> Iterable[int]:
        graph = self._graph
        paired = (node for node, pair in enumerate(graph.pairs) if NONE not in pair[:2])
        return (node for node in paired if not graph.is_container(node) and self._kind(node) == kind)

    def _kind(self, node: int) -> str:
        parts = self._graph.parts(node)
        kind = "products of matrices" if _PRODUCTS.fullmatch(parts.api) else parts.api
        return f"{kind} (backward)" if parts.direction == BACKWARD else kind

    def _size(self, node: int) -> float:
        return max((slot.distance.rel_l2 or 0.0 for slot in self._graph.slots[node] if not slot.is_input), default=0.0)

    def _excess(self, node: int, slot: Slot) -> float:
        own = self._noise_of(node, slot)
        return (slot.distance.rel_l2 or 0.0) / own if own else 0.0

    def _noise_of(self, node: int, slot: Slot) -> float:
        place = self._graph.pairs[node].a
        return self._noise.get(f"{self._graph.alignment.flows[0].names[place]}.{slot.place}", 0.0)
