# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The nodes of two paired dumps: each a pair of calls, or a call that only one side has, with its inputs' producers."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import Slot, is_state
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.entry_name import CELL, EntryName
from probe.reading.dumps.flow import Flow, Link, content_key
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import is_tensor, leaves


class Nodes:
    """Nodes are pairs, or calls without a partner, in order; each has the places with their verdicts."""

    def __init__(self, judged: JudgedPairs, slots: list[list[Slot]]) -> None:
        self.alignment = judged.alignment
        self.pairs = judged.pairs
        self.slots = slots
        alignment = self.alignment
        pairs = self.pairs
        self.dumps = judged.a, judged.b
        self._nodes = [[NONE] * len(flow.names) for flow in alignment.flows]
        for node, pair in enumerate(pairs):
            for nodes, place in zip(self._nodes, pair[:2]):
                if place != NONE:
                    nodes[place] = node
        a, b = alignment.flows
        self._parts = [b.parts[pair.b] if pair.b != NONE else a.parts[pair.a] for pair in pairs]
        cells = [node for node, parts in enumerate(self._parts) if parts.kind == CELL]
        self._updates = {node for node in cells if is_update(self._parts[node], self.entry(node))}

    def side(self, node: int) -> int:
        """Return the side whose name a node has: 1 for B where it is there, else 0 for A."""
        return int(self.pairs[node].b != NONE)

    def flow(self, node: int) -> tuple[Flow, int]:
        """Return the flow and the place of a node, on the side of B where it is there."""
        side = self.side(node)
        return self.alignment.flows[side], self.pairs[node][:2][side]

    def dump(self, node: int) -> NormalDump:
        """Return the dump of a node, B where it is there."""
        return self.dumps[self.side(node)]

    def entry(self, node: int) -> Any:
        """Return the entry of a node."""
        return self.dump(node).data[self.name(node)]

    def name(self, node: int) -> str:
        """Return the name of a node, that in B where it is there."""
        flow, place = self.flow(node)
        return flow.names[place]

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

    def links(self, node: int, place: str) -> tuple[Link | None, ...]:
        """Return the links of an input, in A and in B."""
        return tuple(
            next(
                (link for link in (flow.links[own] if own != NONE else ()) if link.place == place),
                None,
            )
            for flow, own in zip(self.alignment.flows, self.pairs[node][:2])
        )

    def producer_nodes(self, node: int, place: str, first: bool = False) -> tuple[int, ...]:
        """Return the nodes that made an input, or that ``first`` made its content, in A and in B; -1 for outside."""
        makers = [
            NONE if link is None else link.root if first else link.producer
            for link in self.links(node, place)
        ]
        return tuple(
            NONE if maker < 0 else nodes[maker] for maker, nodes in zip(makers, self._nodes)
        )

    def alone_producers(self, node: int, place: str) -> list[int]:
        """Return the nodes that made an input, and that only one side has."""
        return [
            maker
            for maker in self.producer_nodes(node, place)
            if maker != NONE and self.is_alone(maker)
        ]

    def is_alone(self, node: int) -> bool:
        """Return whether only one side has a node."""
        return NONE in self.pairs[node][:2]

    def node_of(self, flow: Flow, place: int) -> int:
        """Return the node of an entry of one side."""
        return self._nodes[int(flow is self.alignment.flows[1])][place]

    def uses_other_output(self, node: int, place: str) -> bool:
        """Return whether the two sides take an input from two different outputs of the calls that made it."""
        found = []
        for link, flow, dump in zip(self.links(node, place), self.alignment.flows, self.dumps):
            if link is None or link.producer < 0:
                return False
            key = content_key(link.record)
            entry = dump.data[flow.names[link.producer]]
            outputs = leaves(entry.get("output") if isinstance(entry, dict) else None)
            found.append(
                {name for name, leaf in outputs if is_tensor(leaf) and content_key(leaf) == key}
            )
        return bool(found[0] and found[1]) and not found[0] & found[1]

    def state_of(self, node: int, cell: str) -> list[str]:
        """Return the parameters of a Cell that its forward changes, in order."""
        entry = self.dump(node).data.get(cell)
        names = entry.get("parameters") if isinstance(entry, dict) else None
        return [name for name in names if is_state(name)] if isinstance(names, dict) else []

    def outermost(self, node: int, place: str) -> tuple[int, str]:
        """Return the outermost Cell that is given the same input, and its place there; the call itself without one."""
        found = node, place
        wanted = [content_key(link.record) if link else None for link in self.links(node, place)]
        flow, own = self.flow(node)
        cell = flow.cells[own]
        while cell is not None and None not in wanted:
            around = self.node_of(flow, flow.position[cell]) if cell in flow.position else NONE
            if around == NONE or self.is_alone(around):
                break
            places = [
                next(
                    (link.place for link in side.links[own] if content_key(link.record) == key), ""
                )
                for side, own, key in zip(self.alignment.flows, self.pairs[around][:2], wanted)
            ]
            if not places[0] or places[0] != places[1]:
                break
            found = around, places[0]
            cell = flow.cells[flow.position[cell]]
        return found

    def is_outside(self, node: int, place: str) -> bool:
        """Return whether an input has no producer on either side and is no parameter."""
        known = [link for link in self.links(node, place) if link is not None]
        is_made = any(link.producer >= 0 or link.parameter is not None for link in known)
        return not is_made and not place.startswith("parameters")

    def slot(self, node: int, place: str) -> Slot | None:
        """Return the verdict on a place; None where there is none."""
        return next((slot for slot in self.slots[node] if slot.place == place), None)
