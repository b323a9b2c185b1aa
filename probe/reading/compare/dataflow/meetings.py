# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Regions with another form in a net that has a fault too: both sides come to the same values by other calls.

Behind the fault all gradients differ, so those of such a region cannot be compared. Its values can: two calls that are
no partners, and make equal values of more than one element, close it.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.reformulation import (
    Form,
    Reformulations,
    acts,
    has_equal,
    tolerance_of,
)
from probe.reading.compare.dataflow.structure import moves_elements
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.flow import Link, is_constant
from probe.reading.dumps.values import Record, element_count, is_tensor, real, tensors, tensors_in

#: so many calls of a side may be in a region
_MOST = 60
#: calls that change gradients alone
_ENDS_GRADIENTS = re.compile(r"[._](stop_gradient|detach)_?$", re.IGNORECASE)
Places = frozenset[int]


class _Made(NamedTuple):
    norm: float
    place: int  # of the call; no two are equal, so records are never compared
    record: Record


class Meetings:
    """The values that calls without an agreeing partner make on both sides."""

    def __init__(self, found: Reformulations) -> None:
        self._graph: Graph = found.graph
        self._found = found
        #: side -> place of a call -> the place of the call of the other side that makes an equal value
        self._met: tuple[dict[int, int], dict[int, int]] = ({}, {})

    def find(self) -> list[Form]:
        """Return the regions that end in such values, each call in one of them."""
        self._meet()
        found: list[Form] = []
        taken: tuple[set[int], set[int]] = (set(), set())
        for a, b in sorted(self._met[0].items(), reverse=True):  # the greatest region first
            form = self._form(a, b)
            if form is None or form.places[0] & taken[0] or form.places[1] & taken[1]:
                continue
            found.append(form)
            for side in (0, 1):
                taken[side].update(form.places[side])
        return found[::-1]

    def _meet(self) -> None:
        """Find the pairs of equal values; the nearest are partners."""
        others = _by_form(self._open_values(1))
        near: list[tuple[float, int, int]] = []
        for one in self._open_values(0):
            most = tolerance_of(one.record, one.record) * self._found.factor
            for other in _of_like_norm(one, others.get(_form_of(one.record), []), most):
                apart = distance(one.record, other.record).rel_l2
                if apart is not None and apart <= most:
                    near.append((apart, one.place, other.place))
        for _, a, b in sorted(near):
            if a not in self._met[0] and b not in self._met[1]:
                self._met[0][a] = b
                self._met[1][b] = a

    def _open_values(self, side: int) -> Iterator[_Made]:
        """Yield the outputs by which a value can be known, of calls without an agreeing partner."""
        alignment = self._graph.alignment
        for place in range(len(alignment.flows[side].names)):
            if not self._is_open(side, place):
                continue
            made = tensors_in(alignment.entry(side, place), "output")
            if len(made) == 1 and _tells(made[0]):
                yield _Made(float(made[0]["Norm"]), place, made[0])

    def _is_open(self, side: int, place: int) -> bool:
        """Return whether a forward call has no partner, or one that makes another value."""
        graph = self._graph
        node = graph.at[side][place]
        parts = graph.alignment.flows[side].parts[place]
        if parts.kind != API or parts.direction != FORWARD or graph.is_container(node):
            return False
        if graph.is_alone(node):
            return True
        return any(slot.verdict in HARD for slot in graph.slots[node] if not slot.is_input)

    # -- the region ---------------------------------------------------------------------------------------------------

    def _form(self, a: int, b: int) -> Form | None:
        """Return the region that ends with two calls; None where it is no other form of one thing."""
        regions = (self._above(0, a), self._above(1, b))
        if min(map(len, regions)) == 0 or max(map(len, regions)) > _MOST:
            return None
        if not all(map(self._is_closed, (0, 1), regions, reversed(regions))):
            return None
        if any(map(self._acts, (0, 1), regions)) or not self._are_given_the_same(regions):
            return None
        exits = [
            place
            for place in regions[0]
            if place in self._met[0] and self._leaves(0, place, regions[0])
        ]
        if self._begins_gradients(regions, exits):
            return None
        apart = [self._apart(place) for place in exits]
        places = tuple(self._with_backwards(side, regions[side]) for side in (0, 1))
        return Form((places[0], places[1]), len(exits), max(apart, default=0.0))

    def _above(self, side: int, place: int) -> Places:
        """Return a call with those above it that have no agreeing partner."""
        flow = self._graph.alignment.flows[side]
        found = {place}
        waiting = [place]
        while waiting and len(found) <= _MOST:
            for link in flow.links[waiting.pop()]:
                maker = _maker(link)
                if maker >= 0 and maker not in found and self._is_open(side, maker):
                    found.add(maker)
                    waiting.append(maker)
        return frozenset(found)

    def _leaves(self, side: int, place: int, region: Places) -> bool:
        users = self._found.users(side, place)
        return not users or not region.issuperset(users)

    def _is_closed(self, side: int, region: Places, other: Places) -> bool:
        """Return whether each value that leaves a region is made in the region of the other side too."""
        leaving = [place for place in region if self._leaves(side, place, region)]
        return all(self._met[side].get(place, NONE) in other for place in leaving)

    def _acts(self, side: int, region: Places) -> bool:
        """Return whether a call does more than to compute, or may put elements in other places."""
        for place in region:
            parts = self._graph.alignment.flows[side].parts[place]
            if acts(parts) or moves_elements(parts.key) or _ENDS_GRADIENTS.search(parts.key):
                return True
        return False

    def _are_given_the_same(self, regions: tuple[Places, Places]) -> bool:
        """Return whether each value from outside that enters on one side enters on the other."""
        given_a, given_b = (list(self._given(side, regions[side])) for side in (0, 1))
        return all(has_equal(one, given_b, self._found.factor) for one in given_a) and all(
            has_equal(one, given_a, self._found.factor) for one in given_b
        )

    def _given(self, side: int, region: Places) -> Iterator[Record]:
        """Yield the values with several elements that no recorded call made."""
        flow = self._graph.alignment.flows[side]
        for place in region:
            for link in flow.links[place]:
                if link.producer < 0 and is_tensor(link.record) and _tells(link.record):
                    yield link.record

    # -- gradients ----------------------------------------------------------------------------------------------------

    def _begins_gradients(self, regions: tuple[Places, Places], exits: list[int]) -> bool:
        """Return whether the gradients that arrive at a region agree, and those that leave it do not."""
        flow_a, flow_b = self._graph.alignment.flows
        for a in exits:
            arriving_a = self._arriving(0, flow_a.backward_of(a))
            arriving_b = self._arriving(1, flow_b.backward_of(self._met[0][a]))
            if not arriving_a or not arriving_b:
                return False
            if not all(has_equal(one, arriving_b, self._found.factor) for one in arriving_a):
                return False  # the difference began behind the region
        region = {
            self._graph.at[side][place]
            for side in (0, 1)
            for place in self._with_backwards(side, regions[side])
        }
        if self._give_the_same(regions):
            return False
        are_known = all(
            map(self._have_backwards, (0, 1), regions)
        )  # else no entry tells their sums
        return not (are_known and self._found.gradients_agree(region))

    def _have_backwards(self, side: int, region: Places) -> bool:
        """Return whether each recorded call whose value enters a region has a backward."""
        flow = self._graph.alignment.flows[side]
        makers = {_maker(link) for place in region for link in flow.links[place]}
        return all(
            flow.backward_of(maker) is not None
            for maker in makers
            if maker >= 0 and maker not in region
        )

    def _give_the_same(self, regions: tuple[Places, Places]) -> bool:
        """Return whether each gradient that leaves the region of one side leaves that of the other."""
        left_a, left_b = (list(self._gradients_left(side, regions[side])) for side in (0, 1))
        factor = self._found.factor
        return all(has_equal(one, left_b, factor) for one in left_a) and all(
            has_equal(one, left_a, factor) for one in left_b
        )

    def _gradients_left(self, side: int, region: Places) -> Iterator[Record]:
        """Yield the gradients that a region gives to the values which enter it."""
        alignment = self._graph.alignment
        flow = alignment.flows[side]
        for place in region:
            backward = flow.backward_of(place)
            if backward is None:
                continue
            given = dict(tensors("output", alignment.entry(side, backward).get("output")))
            for link in flow.links[place]:
                gradient = given.get(link.place.replace("input.", "output.", 1))
                if gradient is not None and _maker(link) not in region:
                    yield gradient

    def _arriving(self, side: int, backward: int | None) -> list[Record]:
        if backward is None:
            return []
        return tensors_in(self._graph.alignment.entry(side, backward), "input")

    def _with_backwards(self, side: int, region: Places) -> Places:
        flow = self._graph.alignment.flows[side]
        backwards = (flow.backward_of(place) for place in region)
        return region.union(place for place in backwards if place is not None)

    def _apart(self, a: int) -> float:
        alignment = self._graph.alignment
        made_a = tensors_in(alignment.entry(0, a), "output")
        made_b = tensors_in(alignment.entry(1, self._met[0][a]), "output")
        return distance(made_a[0], made_b[0]).rel_l2 or 0.0


def _maker(link: Link) -> int:
    """Return the call that made a value first: a view passes it on."""
    return link.root if link.root >= 0 else link.producer


def _form_of(record: Record) -> tuple[str, Any]:
    return str(record.get("shape")), record.get("dtype")


def _by_form(values: Iterable[_Made]) -> dict[Any, list[_Made]]:
    """Return values by shape and dtype, in the order of their norms."""
    found: dict[Any, list[_Made]] = {}
    for made in values:
        found.setdefault(_form_of(made.record), []).append(made)
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


def _tells(record: Record) -> bool:
    """Return whether a content is enough to know a value by."""
    norm = real(record.get("Norm"))
    if norm is None or not math.isfinite(norm):
        return False
    return (element_count(record.get("shape")) or 0) > 1 and not is_constant(record)
