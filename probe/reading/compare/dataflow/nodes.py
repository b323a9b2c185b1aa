# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The nodes of two paired dumps: each a pair of calls, or a call that only one side has, with its inputs' producers."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import Slot, is_state
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import CELL, EntryName
from probe.reading.dumps.flow import Flow, Link, content_key, is_constant
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import is_tensor, leaves, part_of, tensors_in


class Nodes:
    """Nodes are pairs, or calls without a partner, in order; each has the places with their verdicts."""

    def __init__(self, judged: JudgedPairs, slots: list[list[Slot]]) -> None:
        self.alignment = judged.alignment
        #: whether one side is of PyTorch and the other of MindSpore
        self.is_foreign = self.alignment.vocabulary.is_foreign
        self.pairs = judged.pairs
        self.formed = judged.formed
        self.slots = slots
        self.dumps = judged.a, judged.b
        flow_a, flow_b = self.alignment.flows
        nodes_a = [NONE] * len(flow_a.names)
        nodes_b = [NONE] * len(flow_b.names)
        #: side -> place -> node
        self.at = (nodes_a, nodes_b)
        self._sides: list[int] = []
        self._flows: list[tuple[Flow, int]] = []
        self._parts: list[EntryName] = []
        self._updates: set[int] = set()
        leading = self.alignment.leading
        for node, pair in enumerate(self.pairs):
            if pair.a != NONE:
                nodes_a[pair.a] = node
            if pair.b != NONE:
                nodes_b[pair.b] = node
            side = 1 - leading if pair.places[leading] == NONE else leading
            flow = self.alignment.flows[side]
            place = pair.places[side]
            self._sides.append(side)
            self._flows.append((flow, place))
            parts = flow.parts[place]
            self._parts.append(parts)
            if parts.kind == CELL and is_update(parts, self.entry(node)):
                self._updates.add(node)

    def side(self, node: int) -> int:
        """Return the side by which a node is looked at, 0 for A and 1 for B: the leading one where the node is there.

        It is one dump in both orders of a comparison. Names are those of ``shown_side``.
        """
        return self._sides[node]

    def flow(self, node: int) -> tuple[Flow, int]:
        """Return the flow and the place of a node, on the side by which it is looked at."""
        return self._flows[node]

    def shown_side(self, node: int) -> int:
        """Return the side whose name a node has: 1 for B where it is there, else 0 for A."""
        return int(self.pairs[node].b != NONE)

    def shown_flow(self, node: int) -> tuple[Flow, int]:
        """Return the flow and the place of a node, on the side whose name it has."""
        side = self.shown_side(node)
        return self.alignment.flows[side], self.pairs[node].places[side]

    def dump(self, node: int) -> NormalDump:
        """Return the dump of a node, B where it is there."""
        return self.dumps[self.shown_side(node)]

    def entry(self, node: int) -> Any:
        """Return the entry of a node."""
        flow, place = self.flow(node)
        return self.dumps[self.side(node)].data[flow.names[place]]

    def name(self, node: int) -> str:
        """Return the name of a node, that in B where it is there."""
        flow, place = self.shown_flow(node)
        return flow.names[place]

    def names(self, node: int) -> tuple[str, str]:
        """Return the names of a node in A and in B; "" where it is not."""
        flow_a, flow_b = self.alignment.flows
        place_a, place_b = self.pairs[node].places
        name_a = "" if place_a == NONE else flow_a.names[place_a]
        name_b = "" if place_b == NONE else flow_b.names[place_b]
        return name_a, name_b

    def parts(self, node: int) -> EntryName:
        """Return the name of a node, taken apart."""
        return self._parts[node]

    def is_container(self, node: int) -> bool:
        """Return whether this is a Cell whose work is that of the calls in it."""
        flow, place = self.flow(node)
        return flow.names[place] in flow.containers

    def is_update(self, node: int) -> bool:
        """Return whether this is the update of an optimizer."""
        return node in self._updates

    def links(self, node: int, place: str) -> tuple[Link | None, Link | None]:
        """Return the links of an input, in A and in B."""
        pair = self.pairs[node]
        flow_a, flow_b = self.alignment.flows
        return _link_at(flow_a, pair.a, place), _link_at(flow_b, pair.b, place)

    def producer_nodes(self, node: int, place: str, first: bool = False) -> tuple[int, int]:
        """Return the nodes that made an input, or that ``first`` made its content, in A and in B; -1 for outside."""
        link_a, link_b = self.links(node, place)
        nodes_a, nodes_b = self.at
        return _maker(link_a, nodes_a, first), _maker(link_b, nodes_b, first)

    def alone_producers(self, node: int, place: str) -> list[int]:
        """Return the nodes that made an input, and that only one side has; the last stands first, on whichever side.

        A call of a region with another form is none: the other side makes its value too.
        """
        makers = sorted(self.producer_nodes(node, place), reverse=True)
        alone = (maker for maker in makers if maker != NONE and self.is_alone(maker))
        return [maker for maker in alone if not self.is_formed(maker)]

    def is_unmade(self, node: int, place: str) -> bool:
        """Return whether no recorded call made an input, on either side."""
        return max(self.producer_nodes(node, place)) == NONE

    def is_formed(self, node: int) -> bool:
        """Return whether a node is of a region that is another form of one thing."""
        return any(place in formed for place, formed in zip(self.pairs[node].places, self.formed))

    def is_alone(self, node: int) -> bool:
        """Return whether only one side has a node."""
        return not self.pairs[node].is_whole

    def node_of(self, flow: Flow, place: int) -> int:
        """Return the node of an entry of one side."""
        side = int(flow is self.alignment.flows[1])
        return self.at[side][place]

    def users_of(self, node: int) -> list[int]:
        """Return the nodes that are given an output of a call, or the equal output of another call."""
        side = self.side(node)
        flow, place = self.flow(node)
        users = list(flow.used_by.get(place, ()))
        for record in tensors_in(self.alignment.entry(side, place), "output"):
            content = content_key(record)
            if content is not None and not is_constant(record):
                users += self._users[side].get(content, ())
        return sorted({self.at[side][user] for user in users})

    @functools.cached_property
    def _users(self) -> tuple[dict[Hashable, list[int]], dict[Hashable, list[int]]]:
        """The calls of each side by the contents that they are given."""
        flow_a, flow_b = self.alignment.flows
        return _users_by_content(flow_a), _users_by_content(flow_b)

    def uses_other_output(self, node: int, place: str) -> bool:
        """Return whether the two sides take an input from two different outputs of the calls that made it."""
        link_a, link_b = self.links(node, place)
        outputs_a = self._outputs(0, link_a)
        outputs_b = self._outputs(1, link_b)
        return bool(outputs_a and outputs_b) and not outputs_a & outputs_b

    def _outputs(self, side: int, link: Link | None) -> set[str]:
        """Return the outputs of the call that made an input that have its content."""
        if link is None or link.producer < 0:
            return set()
        wanted = content_key(link.record)
        entry = self.alignment.entry(side, link.producer)
        outputs = part_of(entry, "output")
        return {
            name
            for name, leaf in leaves(outputs)
            if is_tensor(leaf) and content_key(leaf) == wanted
        }

    def state_of(self, node: int, cell: str) -> list[str]:
        """Return the parameters of a Cell that its forward changes, in order."""
        entry = self.dump(node).data.get(cell)
        names = part_of(entry, "parameters")
        return list(filter(is_state, names)) if isinstance(names, dict) else []

    def outermost(self, node: int, place: str) -> tuple[int, str]:
        """Return the outermost Cell that is given the same input, and its place there; the call itself without one."""
        link_a, link_b = self.links(node, place)
        key_a = content_key(link_a.record) if link_a else None
        key_b = content_key(link_b.record) if link_b else None
        found = (node, place)
        if key_a is None or key_b is None:
            return found
        flow, own = self.flow(node)
        flow_a, flow_b = self.alignment.flows
        cell = flow.cells[own]
        while cell is not None and cell in flow.position:
            own = flow.position[cell]
            around = self.node_of(flow, own)
            if around == NONE or self.is_alone(around):
                break
            pair = self.pairs[around]
            place_a = _place_of(flow_a, pair.a, key_a)
            place_b = _place_of(flow_b, pair.b, key_b)
            if not place_a or place_a != place_b:
                break
            found = (around, place_a)
            cell = flow.cells[own]
        return found

    def is_outside(self, node: int, place: str) -> bool:
        """Return whether an input has no producer on either side and is no parameter."""
        for link in self.links(node, place):
            if link is not None and (link.producer >= 0 or link.parameter is not None):
                return False
        return not place.startswith("parameters")

    def slot(self, node: int, place: str) -> Slot | None:
        """Return the verdict on a place; None where there is none."""
        return next((slot for slot in self.slots[node] if slot.place == place), None)

    def inputs(self, node: int) -> list[Slot]:
        """Return the places that a call was given."""
        return [slot for slot in self.slots[node] if slot.is_input]

    def outputs(self, node: int) -> list[Slot]:
        """Return the places that a call made."""
        return [slot for slot in self.slots[node] if not slot.is_input]

    def hard(self, node: int) -> list[Slot]:
        """Return the places of a call that differ beyond the tolerance."""
        return [slot for slot in self.slots[node] if slot.is_hard]


def _users_by_content(flow: Flow) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = {}
    for user, links in enumerate(flow.links):
        for link in links:
            found.setdefault(content_key(link.record), []).append(user)
    return found


def _link_at(flow: Flow, call: int, place: str) -> Link | None:
    """Return the link of an input of a call; None where the side has no such call or input."""
    links = flow.links[call] if call != NONE else ()
    return next((link for link in links if link.place == place), None)


def _maker(link: Link | None, nodes: list[int], is_first: bool) -> int:
    if link is None:
        return NONE
    maker = link.root if is_first else link.producer
    return NONE if maker < 0 else nodes[maker]


def _place_of(flow: Flow, call: int, content: Hashable) -> str:
    """Return where a call is given a content; "" where it is not."""
    links = flow.links[call]
    return next((link.place for link in links if content_key(link.record) == content), "")
