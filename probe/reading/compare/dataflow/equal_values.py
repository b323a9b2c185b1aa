# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Equal values that two calls make, one on each side, which are no partners or differ from their partners."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.agreement import tolerance_of
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.flow import is_varied
from probe.reading.dumps.values import Record, real, tensors_in


class _Made(NamedTuple):
    norm: float
    place: int  # of the call; no two are equal, so records are never compared
    record: Record


class EqualValues:
    """The calls of each side whose output an open call of the other side makes too.

    A call is open if no call of the other side is its partner with equal outputs. ``factor`` multiplies the tolerance.
    """

    def __init__(self, graph: Graph, factor: float) -> None:
        self._graph = graph
        self._factor = factor
        self._open = (frozenset(self._find_open(0)), frozenset(self._find_open(1)))
        self._others: tuple[dict[int, int], dict[int, int]] = ({}, {})
        #: place of a call in A -> rel_l2 of its output and the equal one
        self.apart: dict[int, float] = {}
        for apart, a, b in sorted(self._near()):  # the nearest are taken first
            if a not in self._others[0] and b not in self._others[1]:
                self._others[0][a] = b
                self._others[1][b] = a
                self.apart[a] = apart

    def pairs(self) -> list[tuple[int, int]]:
        """Return the places in A and in B of calls with equal outputs, in the order of A."""
        return sorted(self._others[0].items())

    def other(self, side: int, place: int) -> int:
        """Return the place on the other side of the call with an equal output; -1 for none."""
        return self._others[side].get(place, NONE)

    def is_open(self, side: int, place: int) -> bool:
        """Return whether a forward call has no partner, or one that makes another value."""
        return place in self._open[side]

    def _find_open(self, side: int) -> Iterator[int]:
        graph = self._graph
        for place, parts in enumerate(graph.alignment.flows[side].parts):
            if parts.kind != API or parts.direction != FORWARD:
                continue
            node = graph.at[side][place]
            if graph.is_container(node):
                continue
            outputs = [slot.verdict for slot in graph.outputs(node)]
            if graph.is_alone(node) or not HARD.isdisjoint(outputs):
                yield place

    def _near(self) -> Iterator[tuple[float, int, int]]:
        """Yield how far two outputs are apart, and the places of their calls, where they are equal.

        Those of partners are not: their arrays may tell, where statistics do not.
        """
        nodes_a, nodes_b = self._graph.at
        others = _by_shape(self._open_values(1))
        for one in self._open_values(0):
            most = tolerance_of(one.record, one.record) * self._factor
            for other in _of_like_norm(one, others.get(_shape(one.record), []), most):
                if nodes_a[one.place] == nodes_b[other.place]:
                    continue
                apart = distance(one.record, other.record).rel_l2
                if apart is not None and apart <= most:
                    yield apart, one.place, other.place

    def _open_values(self, side: int) -> Iterator[_Made]:
        """Yield the outputs of open calls, if they are enough to know a value by."""
        alignment = self._graph.alignment
        for place in sorted(self._open[side]):
            made = tensors_in(alignment.entry(side, place), "output")
            if len(made) == 1 and is_varied(made[0]):
                norm = real(made[0].get("Norm"))
                if norm is not None and math.isfinite(norm):
                    yield _Made(norm, place, made[0])


def _shape(record: Record) -> tuple[str, Any]:
    return str(record.get("shape")), record.get("dtype")


def _by_shape(values: Iterable[_Made]) -> dict[Any, list[_Made]]:
    """Return values by shape and dtype, in the order of their norms."""
    found: dict[Any, list[_Made]] = {}
    for made in values:
        found.setdefault(_shape(made.record), []).append(made)
    for every in found.values():
        every.sort()
    return found


def _of_like_norm(one: _Made, others: Sequence[_Made], most: float) -> Iterator[_Made]:
    """Yield those of the values whose norm differs from that of one by a part of it at most."""
    apart = 2 * most * one.norm
    first = bisect.bisect_left(others, (one.norm - apart,))
    for made in itertools.islice(others, first, None):
        if made.norm > one.norm + apart:
            break
        yield made
