# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Regions of the dataflow that compute one thing in another form, or in another order.

A region holds calls that differ, and that follow from each other. It is a reformulation if some of its calls have no
partner or another producer, and each value that leaves it agrees, forward and backward. One value that does not agree
makes the whole region a difference.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from probe.naming import written_inputs
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.dataflow.structure import moves_elements
from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import EQUAL, FAINT, HARD, Slot, Verdict
from probe.reading.compare.pairing.partners import NONE, REPLACED
from probe.reading.dumps.call_kinds import is_collective, is_random
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.flow import Flow, Link, content_key, user_frame
from probe.reading.dumps.values import Record, element_count, is_tensor, tensors, tensors_in

#: so many calls may be in a region
_MOST = 400
_PARAMETERS = ("parameters.", "model_parameters.")
#: how the dtypes begin that have no gradient
_WITHOUT_GRADIENT = ("Bool", "Int", "UInt")
_MASK = "Bool"


class Form(NamedTuple):
    """A region that computes one thing in two forms."""

    #: side -> the places of its entries
    places: tuple[frozenset[int], frozenset[int]]
    leaving: int  # how many values leave it
    rel_l2: float  # the greatest distance of these values


class _End(NamedTuple):
    """A value of a region that no call uses."""

    record: Record
    may_lack: bool  # whether it may be the last value of a loop, which the other side need not have


class _Leaving(NamedTuple):
    """A value that leaves a region, and agrees."""

    apart: float  # its rel_l2 on the two sides
    size: int  # its number of elements


class Reformulations:
    """Finds the regions of two dumps that are reformulations."""

    def __init__(self, judged: JudgedPairs) -> None:
        self.graph = Graph(judged)
        self.factor = judged.tolerances.factor  # by how much tolerances are multiplied
        graph = self.graph
        nodes = range(len(graph.pairs))
        #: the nodes that a region may hold
        self._members = {node for node in nodes if graph.off[node] or self._is_replaced(node)}
        results = [node for node in nodes if graph.is_update(node) or _is_gradient(graph, node)]
        self._has_results = bool(results)
        #: whether all gradients of parameters and all updates agree
        self.is_settled = not any(graph.off[node] for node in results)

    def find(self) -> list[Form]:
        """Return the regions of a settled comparison, in order.

        Equal statistics are no proof for a region that puts elements in other places. Such a region counts only where
        nothing else differs.
        """
        found: list[tuple[set[int], Form]] = []
        seen: set[int] = set()
        off = {node for node in self._members if self.graph.off[node]}
        for node in sorted(off):
            if node not in seen:
                region = self._region(node)
                seen |= region
                form = self._form(region)
                if form is not None:
                    found.append((region, form))
        is_all = off <= set().union(*(region for region, _ in found))
        return [form for region, form in found if is_all or not self._moves(region)]

    def _moves(self, region: set[int]) -> bool:
        """Return whether a call of a region, which the other side has not, may put elements in other places."""
        others = filter(self._is_replaced, region)
        return any(moves_elements(parts.key) for node in others for parts in self._names(node))

    # -- the region ---------------------------------------------------------------------------------------------------

    def _region(self, first: int) -> set[int]:
        """Return the members that are connected with a node."""
        found = {first}
        waiting = [first]
        while waiting and len(found) <= _MOST:
            node = waiting.pop()
            for near in self._near(node):
                if near in self._members and near not in found:
                    found.add(near)
                    waiting.append(near)
        return found

    def _near(self, node: int) -> Iterator[int]:
        """Yield the nodes that a node has values from, or gives values to, forward and backward."""
        for side in (0, 1):
            place = self.graph.pairs[node].places[side]
            if place != NONE:
                for near in self._near_places(side, place):
                    yield self.graph.at[side][near]

    def _near_places(self, side: int, place: int) -> Iterator[int]:
        flow = self.graph.alignment.flows[side]
        parts = flow.parts[place]
        forward = flow.forward_of(place) if parts.direction == BACKWARD else place
        around = flow.cells[place]
        if around in flow.position:
            yield flow.position[around]
        if forward is None:
            return
        makers = [link.producer for link in flow.links[forward] if link.producer >= 0]
        for call in (forward, *makers, *self.users(side, forward)):
            yield call
            backward = flow.backward_of(call)
            if backward is not None:
                yield backward

    def users(self, side: int, place: int) -> Sequence[int]:
        """Return the calls that are given the outputs of a call, or equal outputs of another one.

        If two calls have equal outputs, all their users are linked with one of them. Masks have no numbers to link them
        by: calls behind it that are given such a mask may be given this one.
        """
        flow = self.graph.alignment.flows[side]
        users = flow.used_by.get(place, ())
        if users or flow.parts[place].direction == BACKWARD:
            return users
        made = tensors_in(self.graph.alignment.entry(side, place), "output")
        known = self._used[side]
        contents = {_content(record) for record in made}
        twins = {known[content] for content in contents if content in known}
        of_twins = [user for twin in sorted(twins) for user in flow.used_by.get(twin, ())]
        masks = [_content(record) for record in made if record.get("dtype") == _MASK]
        of_masks = (user for mask in masks for user in self._given_masks[side].get(mask, ()))
        return [*of_twins, *(user for user in of_masks if user > place)]

    @functools.cached_property
    def _given_masks(self) -> tuple[dict[Any, list[int]], dict[Any, list[int]]]:
        """Return side -> a mask that no call is known to have made -> the calls that are given it."""
        flow_a, flow_b = self.graph.alignment.flows
        return _users_of_masks(flow_a), _users_of_masks(flow_b)

    @functools.cached_property
    def _used(self) -> tuple[dict[Any, int], dict[Any, int]]:
        """Return side -> content of an input -> the call that is linked as its producer."""
        flow_a, flow_b = self.graph.alignment.flows
        return _producers(flow_a), _producers(flow_b)

    # -- the conditions -----------------------------------------------------------------------------------------------

    def _form(self, region: set[int]) -> Form | None:
        """Return a region as a reformulation; None where it is none, or that cannot be known."""
        if len(region) > _MOST or any(self._is_root(node, region) for node in region):
            return None
        if not any(map(self._is_other_call, region)):
            return None  # the calls are the same: one of them computes another value
        leaving = self._leaving(region)
        if not leaving or not self.gradients_agree(region):
            return None
        is_one_number = max(value.size for value in leaving) == 1
        if is_one_number and not (self._has_backward(region) or self._is_reordered(region)):
            return None  # one number, such as a mean, agrees of other values too
        every = region.union(self._forwards(region))
        places_a, places_b = (
            frozenset(self.graph.pairs[node].places[side] for node in every) - {NONE}
            for side in (0, 1)
        )
        return Form((places_a, places_b), len(leaving), max(value.apart for value in leaving))

    def _forwards(self, region: set[int]) -> Iterator[int]:
        """Yield the forward of each backward of a region."""
        for node in region:
            flow, place = self.graph.flow(node)
            forward = flow.forward_of(place) if _is_backward(flow, place) else None
            if forward is not None:
                yield self.graph.node_of(flow, forward)

    def _is_reordered(self, region: set[int]) -> bool:
        """Return whether both sides do the same operations with the same values, in another order."""
        work_a, work_b = (self._work(side, region) for side in (0, 1))
        return work_a is not None and work_a == work_b

    def _work(self, side: int, region: set[int]) -> tuple[Counter[str], Counter[int]] | None:
        """Return the operations of a region, and the nodes that it has values from; None if these are not known."""
        flow = self.graph.alignment.flows[side]
        operations: Counter[str] = Counter()
        makers: Counter[int] = Counter()
        for node in region:
            place = self.graph.pairs[node].places[side]
            if place == NONE or _is_backward(flow, place):
                continue
            operations[flow.parts[place].key] += 1
            for link in flow.links[place]:
                if link.producer < 0:
                    return None
                maker = self.graph.at[side][link.producer]
                if maker not in region:
                    makers[maker] += 1
        return operations, makers

    def _has_backward(self, region: set[int]) -> bool:
        return any(self.graph.parts(node).direction == BACKWARD for node in region)

    def _is_root(self, node: int, region: set[int]) -> bool:
        """Return whether a difference of this node is no form: it comes from outside, is random, or is written."""
        graph = self.graph
        parts = graph.parts(node)
        if graph.is_update(node) or _is_gradient(graph, node):
            return True
        if any(acts(one) for one in self._names(node)):
            return True
        if parts.direction == BACKWARD:
            return self._is_lost(node)
        slots = graph.slots[node]
        return any(
            self._is_given_other(node, slot, region) or _has_two_dtypes(slot) for slot in slots
        )

    def _is_lost(self, node: int) -> bool:
        """Return whether one side lacks the backward of a call whose output it uses: the gradient ends there."""
        graph = self.graph
        if not graph.is_alone(node):
            return False
        flow, place = graph.flow(node)
        forward = flow.forward_of(place)
        if forward is None:
            return True
        other = 1 - graph.side(node)
        node_of_forward = graph.node_of(flow, forward)
        partner = graph.pairs[node_of_forward].places[other]
        if partner == NONE or not self._has_gradient(other, partner):
            return False
        if self._has_other_maker(node_of_forward):
            return False  # partners by their names alone
        return bool(self.users(other, partner))

    def _has_gradient(self, side: int, place: int) -> bool:
        """Return whether a call may have a gradient: an output is neither a mask nor an integer."""
        made = tensors_in(self.graph.alignment.entry(side, place), "output")
        return not all(str(record.get("dtype")).startswith(_WITHOUT_GRADIENT) for record in made)

    def _names(self, node: int) -> list[EntryName]:
        """Return the names of a node on both sides, taken apart."""
        flow_a, flow_b = self.graph.alignment.flows
        pair = self.graph.pairs[node]
        sides = ((flow_a, pair.a), (flow_b, pair.b))
        return [flow.parts[place] for flow, place in sides if place != NONE]

    def _is_given_other(self, node: int, slot: Slot, region: set[int]) -> bool:
        """Return whether an input is a parameter or a value from outside that differs.

        Of two calls that are another one, the region of the other side may be given the value elsewhere.
        """
        if not slot.is_input or slot.verdict not in HARD:
            return False
        is_own = slot.place.startswith(_PARAMETERS)
        if not is_own and not self.graph.is_unmade(node, slot.place):
            return False
        if is_own or self.graph.pairs[node].how != REPLACED:
            return True
        return not all(
            has_equal(record, self._given_outside(other, region), self.factor)
            for record, other in ((slot.a, 1), (slot.b, 0))
            if is_tensor(record)
        )

    def _given_outside(self, side: int, region: set[int]) -> list[Record]:
        """Return the values that no recorded call made, and that a side gives to a region."""
        flow = self.graph.alignment.flows[side]
        places = [self.graph.pairs[node].places[side] for node in region]
        links = [link for place in places if place != NONE for link in flow.links[place]]
        return [link.record for link in links if link.producer < 0 and is_tensor(link.record)]

    def _is_other_call(self, node: int) -> bool:
        """Return whether a call is another one: by its name, an argument, or the calls that its inputs come from."""
        graph = self.graph
        if self._is_replaced(node):
            return True
        if graph.parts(node).direction != FORWARD or graph.is_container(node):
            return False
        given = [slot.verdict for slot in graph.slots[node] if slot.is_input]
        return Verdict.ARGUMENT in given or self._has_other_maker(node)

    def _is_replaced(self, node: int) -> bool:
        """Return whether a call has no partner, or one of another name."""
        graph = self.graph
        if graph.parts(node).direction != FORWARD or graph.is_container(node):
            return False
        return graph.is_alone(node) or graph.pairs[node].how == REPLACED

    def _has_other_maker(self, node: int) -> bool:
        graph = self.graph
        for slot in graph.slots[node]:
            if slot.is_input and slot.verdict in HARD:
                maker_a, maker_b = graph.producer_nodes(node, slot.place)
                if maker_a != maker_b or graph.uses_other_output(node, slot.place):
                    return True
        return False

    def _leaving(self, region: set[int]) -> list[_Leaving]:
        """Return the values that leave a region forward; [] where one does not agree."""
        graph = self.graph
        found: list[_Leaving] = []
        ends: tuple[list[_End], list[_End]] = ([], [])
        for node in region:
            if graph.parts(node).direction == BACKWARD or graph.is_container(node):
                continue
            for side in (0, 1):
                place = graph.pairs[node].places[side]
                if place == NONE:
                    continue
                users = self.users(side, place)
                slots: list[Slot] = []
                if not users and self._is_off(node):
                    may_lack = self._is_left_over(side, place, region)
                    made = tensors_in(graph.alignment.entry(side, place), "output")
                    ends[side].extend(_End(record, may_lack) for record in made)
                elif not users:
                    slots += [slot for slot in graph.slots[node] if not slot.is_input]
                for user in users:
                    known = graph.at[side][user]
                    if known not in region:
                        given = self._given(side, known, user, place)
                        if not given:
                            return []  # the other side gives it at no place of this name
                        slots += given
                if not all(map(_is_known, slots)):
                    return []
                found += [
                    _leaving(slot.a, slot.distance.rel_l2 or 0.0)
                    for slot in slots
                    if is_tensor(slot.a)
                ]
        matched = self._matched(*ends)
        return [] if matched is None else [*found, *matched]

    def _is_left_over(self, side: int, place: int, region: set[int]) -> bool:
        """Return whether a call without users may be the last one of a loop: calls of its line before it have users."""
        flow = self.graph.alignment.flows[side]
        line = self._line(side, place)
        if line is None or flow.backward_of(place) is not None:
            return False
        for node in region:
            other = self.graph.pairs[node].places[side]
            if other in (NONE, place) or flow.parts[other].key != flow.parts[place].key:
                continue
            if other < place and self._line(side, other) == line and self.users(side, other):
                return True
        return False

    def _line(self, side: int, place: int) -> tuple[str, int] | None:
        """Return the file and the line that made a call; None where they are not known."""
        dump = self.graph.dumps[side]
        frame = user_frame(dump.stacks.get(self.graph.alignment.flows[side].names[place]) or ())
        return None if frame is None else (frame.file, frame.line)

    def _is_off(self, node: int) -> bool:
        made = [slot.verdict for slot in self.graph.slots[node] if not slot.is_input]
        return self.graph.is_alone(node) or not HARD.isdisjoint(made)

    def _given(self, side: int, node: int, user: int, maker: int) -> list[Slot]:
        """Return the places at which a call is given the outputs of another one."""
        made = tensors_in(self.graph.alignment.entry(side, maker), "output")
        contents = {_content(record) for record in made}
        links = self.graph.alignment.flows[side].links[user]
        places = {
            link.place
            for link in links
            if link.producer == maker or _content(link.record) in contents
        }
        return [slot for slot in self.graph.slots[node] if slot.place in places]

    def _matched(self, ends_a: list[_End], ends_b: list[_End]) -> list[_Leaving] | None:
        """Return the values that no call uses; None where one has no equal on the other side.

        The last value of a loop needs none if the other side has no such value at all: then no result differs.
        """
        every = itertools.product(enumerate(ends_a), enumerate(ends_b))
        # the nearest first, from whichever side they are looked at
        nearest = sorted(
            (self._apart(one.record, other.record), a, b) for (a, one), (b, other) in every
        )
        found: dict[int, _Leaving] = {}
        taken: set[int] = set()
        for size, a, b in nearest:
            record = ends_a[a].record
            is_near = size <= tolerance_of(record, ends_b[b].record) * self.factor
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

    def gradients_agree(self, region: set[int]) -> bool:
        """Return whether each gradient that leaves a region is known to agree: none of its receivers is off."""
        graph = self.graph
        backwards = [node for node in region if graph.parts(node).direction == BACKWARD]
        for node in backwards:
            for side in (0, 1):
                place = graph.pairs[node].places[side]
                forward = None if place == NONE else graph.alignment.flows[side].forward_of(place)
                if forward is None or graph.is_container(node):
                    continue
                links = graph.alignment.flows[side].links[forward]
                if not all(self._receives(side, link, region) for link in links):
                    return False
                if any(self._leaves_record(side, node, link, backwards) for link in links):
                    return False
        return True

    def _leaves_record(self, side: int, node: int, link: Link, backwards: list[int]) -> bool:
        """Return whether a value from outside gets a gradient that the other side does not give it."""
        if link.producer >= 0 or link.parameter is not None:
            return False
        gradient = self._gradient_of(side, node, link)
        if gradient is None:
            return False
        others = list(self._gradients_outside(1 - side, link.record, backwards))
        return not has_equal(gradient, others, self.factor)

    def _gradient_of(self, side: int, node: int, link: Link) -> Record | None:
        """Return the gradient that a backward gives to an input of its forward; None where it gives none."""
        wanted = link.place.replace("input.", "output.", 1)
        entry = self.graph.alignment.entry(side, self.graph.pairs[node].places[side])
        return dict(tensors("output", entry.get("output"))).get(wanted)

    def _gradients_outside(
        self, side: int, value: Record, backwards: Sequence[int]
    ) -> Iterator[Record]:
        """Yield the gradients that a region gives to a value from outside: the operands may have changed places."""
        flow = self.graph.alignment.flows[side]
        for node in backwards:
            place = self.graph.pairs[node].places[side]
            forward = None if place == NONE else flow.forward_of(place)
            for link in () if forward is None else flow.links[forward]:
                is_outside = link.producer < 0 and link.parameter is None
                if is_outside and _content(link.record) == _content(value):
                    gradient = self._gradient_of(side, node, link)
                    if gradient is not None:
                        yield gradient

    def _receives(self, side: int, link: Link, region: set[int]) -> bool:
        """Return whether the gradient of an input goes to a call whose own gradients are known, or to no call."""
        graph = self.graph
        if link.producer < 0:
            # an agreeing gradient of a parameter is that of its entry, or of the update
            return link.parameter is None or self._has_results
        maker = graph.at[side][link.producer]
        backward = graph.alignment.flows[side].backward_of(link.producer)
        if maker in region or backward is None:
            return True
        slots = graph.slots[graph.at[side][backward]]
        if any(slot.verdict in HARD for slot in slots if not slot.is_input):
            # it passes the difference on: to others of the region, or out of it
            return graph.at[side][backward] in region
        return all(_is_known(slot) for slot in slots if slot.is_input)


def tolerance_of(a: Record, b: Record) -> float:
    """Return by how much two values that are equal may differ."""
    return max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))


def has_equal(record: Record, others: Iterable[Record], factor: float) -> bool:
    """Return whether a value of one side agrees with one of the other side."""
    for other in others:
        if _is_alike(record, other):
            apart = distance(record, other).rel_l2
            if apart is not None and apart <= tolerance_of(record, other) * factor:
                return True
    return False


def have_the_same(in_a: Sequence[Record], in_b: Sequence[Record], factor: float) -> bool:
    """Return whether each value of one side agrees with one of the other side."""
    return all(has_equal(one, in_b, factor) for one in in_a) and all(
        has_equal(one, in_a, factor) for one in in_b
    )


def _is_alike(a: Record, b: Record) -> bool:
    """Return whether two tensors have one shape and dtype."""
    return bool(a.get("shape") == b.get("shape") and a.get("dtype") == b.get("dtype"))


def _leaving(record: Record, apart: float) -> _Leaving:
    return _Leaving(apart, element_count(record.get("shape")) or 1)


def _producers(flow: Flow) -> dict[Any, int]:
    """Return the content of each input -> the call that is linked as its producer."""
    found: dict[Any, int] = {}
    for links in flow.links:
        for link in links:
            if link.producer >= 0:
                found[_content(link.record)] = link.producer
    return found


def _users_of_masks(flow: Flow) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = {}
    for place, links in enumerate(flow.links):
        for link in links:
            if link.producer < 0 and link.record.get("dtype") == _MASK:
                found.setdefault(_content(link.record), []).append(place)
    return found


def _content(record: Record) -> tuple[Any, str]:
    """Return the content of a tensor, with its shape: the statistics of a transpose are the same."""
    return content_key(record), str(record.get("shape"))


def _has_two_dtypes(slot: Slot) -> bool:
    """Return whether the sides compute in two dtypes: that is no form, and casts have an answer of their own.

    A mask in the place of a number is the output of another call.
    """
    if not (is_tensor(slot.a) and is_tensor(slot.b)):
        return False
    dtypes = {str(slot.a.get("dtype")), str(slot.b.get("dtype"))}
    return len(dtypes) > 1 and _MASK not in dtypes


def _is_backward(flow: Flow, place: int) -> bool:
    return flow.parts[place].direction == BACKWARD


def acts(parts: EntryName) -> bool:
    """Return whether a call does more than to compute: it draws numbers, communicates, or writes an input."""
    return is_random(parts) or is_collective(parts) or bool(written_inputs(parts.key))


def _is_gradient(graph: Graph, node: int) -> bool:
    return graph.parts(node).kind == GRADIENT


def _is_known(slot: Slot) -> bool:
    """Return whether two values agree, and both have numbers."""
    if not (is_tensor(slot.a) and is_tensor(slot.b)):
        return not slot.verdict
    return slot.verdict in EQUAL or slot.verdict in FAINT


def names_of(graph: Graph, side: int, places: Iterable[int]) -> list[str]:
    """Return the names of the calls of APIs among some places."""
    flow: Any = graph.alignment.flows[side]
    own = [place for place in sorted(places) if flow.parts[place].direction == FORWARD]
    return [flow.names[place] for place in own if flow.parts[place].kind == API]
