# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The possible causes of each node: the calls that made its inputs, or the work inside of a Cell."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from probe.reading.compare.dataflow.nodes import Nodes
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import MASK, link_key
from probe.reading.dumps.values import tensors_in

#: no Cell is in more others
_DEEPEST = 200
#: a possible cause: a node, and the input through which it acts ("" for no single input)
Cause = tuple[int, str]
#: the content of a mask -> the places of the calls that made it
_Makers = dict[Any, list[int]]


class Causes:
    """The possible causes of each node."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._inside = self._find_inside()
        numbers = range(len(nodes.pairs))
        #: node -> the cause that acts through no single input: one object each, as many nodes share them
        self._whole: list[Cause] = [(node, "") for node in numbers]
        #: node -> its causes
        self.of = [self._of_node(node) for node in numbers]

    def _find_inside(self) -> dict[str, list[int]]:
        """Return the nodes in each Cell: by the Cell's entry, and backward ones also by the Cell's key."""
        inside: dict[str, list[int]] = {}
        for side, flow in enumerate(self._nodes.alignment.flows):
            nodes = self._nodes.at[side]
            for place, cell in enumerate(flow.cells):
                parts = flow.parts[place]
                is_backward = parts.direction == BACKWARD
                names: list[str] = []
                if cell is not None:
                    names.append(cell)
                    if is_backward:
                        names.append(cell.partition(".backward.")[0])
                elif parts.kind in (API, CELL):
                    names.append("")
                if is_backward and parts.kind == CELL:
                    names.append(parts.key)
                for name in names:
                    inside.setdefault(f"{side} {name}", []).append(nodes[place])
        return inside

    def _inside_of(self, side: int, name: str) -> Iterable[int]:
        return self._inside.get(f"{side} {name}", ())

    def _of_node(self, node: int) -> tuple[Cause, ...]:
        pair = self._nodes.pairs[node]
        causes: list[Cause] = []
        if pair.a != NONE:
            causes = self._on_side(0, pair.a, node)
        if pair.b != NONE:
            others = self._on_side(1, pair.b, node)
            if others != causes:
                causes += others
        causes.sort()
        return tuple(causes)

    def _on_side(self, side: int, place: int, node: int) -> list[Cause]:
        flow = self._nodes.alignment.flows[side]
        nodes = self._nodes.at[side]
        parts = flow.parts[place]
        causes: list[Cause] = []
        if parts.kind in (GRADIENT, CELL):
            name = parts.key if parts.kind == GRADIENT else flow.names[place]
            inside = self._inside_of(side, name)
            causes += [self._whole[other] for other in inside if other != node]
        if parts.direction == BACKWARD:
            causes += [self._whole[nodes[cause]] for cause in flow.backward_causes(place)]
            return causes
        for link in flow.links[place]:
            if link.producer >= 0:
                causes.append((nodes[link.producer], link.place))
            elif link.record.get("dtype") == MASK:
                makers = self._makers_of_masks[side].get(link_key(link.record), ())
                causes += [(nodes[maker], link.place) for maker in makers if maker < place]
        return causes

    @functools.cached_property
    def _makers_of_masks(self) -> tuple[_Makers, _Makers]:
        """Side -> a mask without a checksum -> the calls that made an equal one: any of them may have made it."""
        return self._find_makers(0), self._find_makers(1)

    def _find_makers(self, side: int) -> _Makers:
        alignment = self._nodes.alignment
        found: _Makers = {}
        for place, parts in enumerate(alignment.flows[side].parts):
            if parts.direction != FORWARD or parts.kind == CELL:
                continue
            for record in tensors_in(alignment.entry(side, place), "output"):
                if record.get("dtype") == MASK:
                    found.setdefault(link_key(record), []).append(place)
        return found

    def earlier_in_cell(self, node: int) -> Iterable[int]:
        """Yield the nodes before this one in its Cell and the Cells around it."""
        flow, place = self._nodes.flow(node)
        around: list[str] = []
        cell = flow.cells[place]
        while cell is not None and len(around) < _DEEPEST:
            around.append(cell)
            own = flow.position.get(cell)
            cell = None if own is None else flow.cells[own]
        side = self._nodes.side(node)
        for name in (*around, ""):
            yield from (other for other in self._inside_of(side, name) if other < node)
