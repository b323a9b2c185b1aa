# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The values that leave a region of the dataflow forward: whether each agrees with one of the other side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from probe.reading.compare.dataflow.agreement import is_known, tolerance_of
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.users import Users, content_of
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import BACKWARD
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.values import Record, count_of, is_tensor, tensors_in


class _End(NamedTuple):
    """A value of a region that no call uses."""

    record: Record
    may_lack: bool  # whether it may be the last value of a loop, which the other side need not have


class Leaving(NamedTuple):
    """A value that leaves a region, and agrees."""

    apart: float  # its rel_l2 on the two sides
    size: int  # its number of elements


class LeavingValues:
    """Finds the values that leave regions.

    Args:
        graph: the dataflow.
        users: the users of its calls.
        factor: by how much tolerances are multiplied.
    """

    def __init__(self, graph: Graph, users: Users, factor: float) -> None:
        self._graph = graph
        self._users = users
        self._factor = factor

    def find(self, region: set[int]) -> list[Leaving]:
        """Return the values that leave a region forward; [] where one does not agree."""
        graph = self._graph
        found: list[Leaving] = []
        ends: tuple[list[_End], list[_End]] = ([], [])
        for node in region:
            if graph.parts(node).direction == BACKWARD or graph.is_container(node):
                continue
            for side in (0, 1):
                place = graph.pairs[node].places[side]
                if place == NONE:
                    continue
                users = self._users.of(side, place)
                if not users and self._is_off(node):
                    ends[side].extend(self._ends(side, place, region))
                    continue
                slots = self._leaving_at(side, node, users, region)
                if slots is None or not all(map(is_known, slots)):
                    return []
                tensors = [slot for slot in slots if is_tensor(slot.a)]
                found += [_leaving(slot.a, slot.distance.rel_l2 or 0.0) for slot in tensors]
        matched = self._matched(*ends)
        return [] if matched is None else [*found, *matched]

    def _ends(self, side: int, place: int, region: set[int]) -> list[_End]:
        """Return the outputs of a call that no call uses."""
        may_lack = self._is_left_over(side, place, region)
        made = tensors_in(self._graph.alignment.entry(side, place), "output")
        return [_End(record, may_lack) for record in made]

    def _leaving_at(
        self, side: int, node: int, users: Sequence[int], region: set[int]
    ) -> list[Slot] | None:
        """Return the places at which a value leaves a region: inputs of its users, or its own where it has none.

        None: the other side gives it to a user at no place of this name.
        """
        graph = self._graph
        if not users:
            return graph.outputs(node)
        slots: list[Slot] = []
        for user in users:
            known = graph.at[side][user]
            if known in region:
                continue
            given = self._given(side, known, user, graph.pairs[node].places[side])
            if not given:
                return None
            slots += given
        return slots

    def _is_left_over(self, side: int, place: int, region: set[int]) -> bool:
        """Return whether a call without users may be the last one of a loop: calls of its line before it have users."""
        flow = self._graph.alignment.flows[side]
        line = self._line(side, place)
        if line is None or flow.backward_of(place) is not None:
            return False
        for node in region:
            other = self._graph.pairs[node].places[side]
            if other in (NONE, place) or flow.parts[other].key != flow.parts[place].key:
                continue
            if other < place and self._line(side, other) == line and self._users.of(side, other):
                return True
        return False

    def _line(self, side: int, place: int) -> tuple[str, int] | None:
        """Return the file and the line that made a call; None where they are not known."""
        dump = self._graph.dumps[side]
        frame = user_frame(dump.stacks.get(self._graph.alignment.flows[side].names[place]) or ())
        return None if frame is None else (frame.file, frame.line)

    def _is_off(self, node: int) -> bool:
        made = [slot.verdict for slot in self._graph.outputs(node)]
        return self._graph.is_alone(node) or not HARD.isdisjoint(made)

    def _given(self, side: int, node: int, user: int, maker: int) -> list[Slot]:
        """Return the places at which a call is given the outputs of another one."""
        made = tensors_in(self._graph.alignment.entry(side, maker), "output")
        contents = {content_of(record) for record in made}
        links = self._graph.alignment.flows[side].links[user]
        places = {
            link.place
            for link in links
            if link.producer == maker or content_of(link.record) in contents
        }
        return [slot for slot in self._graph.slots[node] if slot.place in places]

    def _matched(self, ends_a: list[_End], ends_b: list[_End]) -> list[Leaving] | None:
        """Return the values that no call uses; None where one has no equal on the other side.

        The last value of a loop needs none if the other side has no such value at all: then no result differs.
        """
        every = itertools.product(enumerate(ends_a), enumerate(ends_b))
        # the nearest first, from whichever side they are looked at
        nearest = sorted(
            (self._apart(one.record, other.record), a, b) for (a, one), (b, other) in every
        )
        found: dict[int, Leaving] = {}
        taken: set[int] = set()
        for size, a, b in nearest:
            record = ends_a[a].record
            is_near = size <= tolerance_of(record, ends_b[b].record) * self._factor
            if is_near and a not in found and b not in taken:
                found[a] = _leaving(record, size)
                taken.add(b)
        rest_a = [end for a, end in enumerate(ends_a) if a not in found]
        rest_b = [end for b, end in enumerate(ends_b) if b not in taken]
        is_closed = not (rest_a and rest_b) and all(end.may_lack for end in (*rest_a, *rest_b))
        return list(found.values()) if is_closed else None

    def _apart(self, a: Record, b: Record) -> float:
        if a.get("shape") != b.get("shape"):
            return float("inf")
        found = distance(a, b).rel_l2
        return float("inf") if found is None else found


def _leaving(record: Record, apart: float) -> Leaving:
    return Leaving(apart, count_of(record) or 1)
