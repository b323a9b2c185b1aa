# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The gradients that arrive at a region of calls and that leave it, on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probe.reading.compare.dataflow.agreement import have_the_same
from probe.reading.compare.dataflow.reformulation import Reformulations
from probe.reading.dumps.flow import Link
from probe.reading.dumps.values import Record, tensors, tensors_in

#: the places of the calls of a region on one side
Places = frozenset[int]


class RegionGradients:
    """Looks at the gradients of the regions of a comparison."""

    def __init__(self, found: Reformulations) -> None:
        self._found = found
        self._alignment = found.graph.alignment

    def begin_to_differ(
        self, regions: tuple[Places, Places], exits: Sequence[tuple[int, int]]
    ) -> bool:
        """Return whether a difference of gradients may begin in a region.

        It does not if other gradients arrive at its ends: then it began behind the region.

        Args:
            regions: the places of its calls in A and in B.
            exits: the calls in A and in B whose equal values leave it.
        """
        arriving = {
            pair: (self._arriving(0, pair[0]), self._arriving(1, pair[1])) for pair in exits
        }
        if any(bool(in_a) != bool(in_b) for in_a, in_b in arriving.values()):
            return True  # a backward of one side alone: its gradient may be any
        ends = [arriving[pair] for pair in exits if self._is_end(regions, pair)]
        if not all(have_the_same(in_a, in_b, self._found.factor) for in_a, in_b in ends):
            return False
        if self._give_the_same(regions):
            return False
        are_known = all(map(self._have_backwards, (0, 1), regions))  # else no entry tells the sums
        return not (are_known and self._found.gradients.agree(self._nodes(regions)))

    def with_backwards(self, side: int, region: Places) -> Places:
        """Return the places of calls, and those of their backwards."""
        flow = self._alignment.flows[side]
        backwards = (flow.backward_of(place) for place in region)
        return region.union(place for place in backwards if place is not None)

    def _nodes(self, regions: tuple[Places, Places]) -> set[int]:
        at = self._found.graph.at
        return {
            at[side][place] for side in (0, 1) for place in self.with_backwards(side, regions[side])
        }

    def _is_end(self, regions: tuple[Places, Places], pair: tuple[int, int]) -> bool:
        """Return whether no call of a region uses the outputs of two calls: no gradient comes from inside of it."""
        users = (self._found.users.of(side, place) for side, place in enumerate(pair))
        return all(region.isdisjoint(own) for region, own in zip(regions, users))

    def _arriving(self, side: int, place: int) -> list[Record]:
        """Return the gradients that arrive at a call; none where it has no backward."""
        backward = self._alignment.flows[side].backward_of(place)
        if backward is None:
            return []
        return tensors_in(self._alignment.entry(side, backward), "input")

    def _have_backwards(self, side: int, region: Places) -> bool:
        """Return whether each recorded call whose value enters a region has a backward."""
        flow = self._alignment.flows[side]
        makers = {maker_of(link) for place in region for link in flow.links[place]}
        entering = [maker for maker in makers - region if maker >= 0]
        return all(flow.backward_of(maker) is not None for maker in entering)

    def _give_the_same(self, regions: tuple[Places, Places]) -> bool:
        """Return whether each gradient that leaves the region of one side leaves that of the other."""
        left_a, left_b = (list(self._leaving(side, regions[side])) for side in (0, 1))
        return have_the_same(left_a, left_b, self._found.factor)

    def _leaving(self, side: int, region: Places) -> Iterator[Record]:
        """Yield the gradients that a region gives to the values which enter it."""
        flow = self._alignment.flows[side]
        for place in region:
            backward = flow.backward_of(place)
            if backward is None:
                continue
            given = dict(tensors("output", self._alignment.entry(side, backward).get("output")))
            for link in flow.links[place]:
                gradient = given.get(link.place.replace("input.", "output.", 1))
                if gradient is not None and maker_of(link) not in region:
                    yield gradient


def maker_of(link: Link) -> int:
    """Return the place of the call that made a value first, as a view passes it on; negative for none."""
    return link.root if link.root >= 0 else link.producer
