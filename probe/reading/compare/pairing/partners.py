# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The pairs of the calls of two dumps: the partner of each call, and how it was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from probe.reading.compare.pairing.side import Side
from probe.reading.dumps.entry_name import API, CELL, FORWARD
from probe.reading.dumps.flow import Flow, Link

#: how a pair was found
EXACT = "exact"  # by its name
COUNTED = "counted"  # its name has another number
MOVED = "moved"  # it stands at another place in its Cell
RENAMED = "renamed"  # it is in another Cell
MAPPED = "mapped"  # by the words of two frameworks, or the user's map
STATISTICS = "statistics"  # another API with the same output
REPLACED = "replaced"  # another API
#: the place of a call that one side alone has
NONE = -1

#: two places that are partners -> how that was found
Found = dict[tuple[int, int], str]


class Pair(NamedTuple):
    """Two entries that stand for one call."""

    a: int  # its place in A; -1 where it is only in B
    b: int  # its place in B; -1 where it is only in A
    how: str  # how it was found, as above; "" for one without a partner

    @property
    def places(self) -> tuple[int, int]:
        """Its places in A and in B."""
        return self.a, self.b

    @property
    def is_whole(self) -> bool:
        """Whether it has an entry on both sides."""
        return NONE not in (self.a, self.b)


class Partners:
    """The pairs of two dumps, which may be taken apart and made anew."""

    def __init__(self, side_a: Side, side_b: Side) -> None:
        self.flows: tuple[Flow, Flow] = (side_a.flow, side_b.flow)
        self._sides = (side_a, side_b)
        self.b_of = side_a.partners  # place in A -> place in B
        self.a_of = side_b.partners  # place in B -> place in A
        self.how: dict[int, str] = {}  # place in A -> how its partner was found
        self._is_turned = False

    @property
    def leading(self) -> int:
        """The side whose order the pairs have, and by which they are looked at: 0 for A, 1 for B."""
        return 0 if self._is_turned else 1

    def turn(self) -> None:
        """Let A be B, and B be A; the pairs, their order and the leading dump stay."""
        self.how = {b: self.how[a] for a, b in self.b_of.items()}
        self.b_of, self.a_of = self.a_of, self.b_of
        self.flows = self.flows[::-1]
        self._sides = self._sides[::-1]
        self._is_turned = not self._is_turned

    def partners(self, side: int) -> dict[int, int]:
        """Return place -> its partner's place, for the places of a side: 0 for A, 1 for B."""
        return self._sides[side].partners

    def entry(self, side: int, place: int) -> Any:
        """Return the entry of a place."""
        return self._sides[side].entry(place)

    def pair(self, a: int, b: int, how: str) -> bool:
        """Pair two places unless one of them has a partner."""
        if a in self.b_of or b in self.a_of:
            return False
        self.b_of[a] = b
        self.a_of[b] = a
        self.how[a] = how
        return True

    def found(self, places: Iterable[int]) -> Found:
        """Return the pairs that these places of A have, each with how it was found."""
        found: Found = {}
        for a in places:
            b = self.b_of.get(a)
            if b is not None:
                found[a, b] = self.how[a]
        return found

    def pair_every(self, pairs: Iterable[tuple[int, int]], how: str) -> int:
        """Pair places, and return how many pairs were made."""
        made = [self.pair(a, b, how) for a, b in pairs]
        return sum(made)

    def pair_backwards(self) -> None:
        """Pair the backwards of paired forwards."""
        flow_a, flow_b = self.flows
        for a, b in list(self.b_of.items()):
            parts = flow_a.parts[a]
            if parts.direction != FORWARD or parts.kind not in (API, CELL):
                continue
            backward_a = flow_a.backward_of(a)
            backward_b = flow_b.backward_of(b)
            if backward_a is not None and backward_b is not None:
                self.pair(backward_a, backward_b, self.how[a])

    def separate(self, a: int) -> None:
        """Take a pair apart."""
        b = self.b_of.pop(a)
        del self.a_of[b]
        del self.how[a]

    def separate_calls(self, places: Iterable[int]) -> None:
        """Take pairs apart, by their places in A, with their backwards."""
        flow_a, _ = self.flows
        for a in dict.fromkeys(places):
            self.separate(a)
            backward = flow_a.backward_of(a)
            if backward is not None and backward in self.b_of:
                self.separate(backward)

    def is_one_loosely(self, left: Link, right: Link) -> bool:
        """Return whether an input comes from partners after all, if views and permutations are looked through."""
        flow_a, flow_b = self.flows
        root_a = flow_a.loose_root(left)
        root_b = flow_b.loose_root(right)
        return self.b_of.get(root_a) == root_b

    def may_be_one_line(self, a: int, b: int) -> bool:
        """Return whether the lines of code that made two calls have one text, or one of them is not known."""
        side_a, side_b = self._sides
        line_a = side_a.line(a)
        line_b = side_b.line(b)
        return None in (line_a, line_b) or line_a == line_b

    def is_one_call(self, a: int, b: int) -> bool:
        """Return whether one word stands for the APIs of two places."""
        side_a, side_b = self._sides
        return side_a.word(a) == side_b.word(b)

    def pairs(self) -> list[Pair]:
        """Return all pairs in the order of the leading side; those only on the other stand where they are there."""
        ordered = self._ordered()
        if not self._is_turned:
            return [Pair(a, b, self.how.get(a, "")) for a, b in ordered]
        return [Pair(b, a, self.how.get(b, "")) for a, b in ordered]

    def _ordered(self) -> Iterator[tuple[int, int]]:
        """Yield all pairs as they stood before they were turned, in the order of B."""
        side_a, side_b = self._sides[::-1] if self._is_turned else self._sides
        waiting = iter(range(len(side_a.flow.names)))
        done = NONE
        for b in range(len(side_b.flow.names)):
            a = side_b.partners.get(b, NONE)
            while done < a:
                done = next(waiting)
                if done not in side_a.partners:
                    yield done, NONE
            yield a, b
        for a in side_a.free(waiting):
            yield a, NONE
