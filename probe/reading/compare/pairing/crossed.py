# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of a Cell that is called several times in a step, where the two runs call it in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import Flow, content_key, user_frame

#: content of the inputs -> place; under None a call whose inputs tell nothing
_Calls = dict[Any, int]


def crossed_cells(flows: tuple[Flow, Flow], dumps: tuple[Dump, Dump]) -> list[tuple[int, int]]:
    """Return pairs of places of Cells whose inputs tell that they are partners, though their numbers differ.

    All calls of such a Cell are there: each has inputs that no other call of it has, and one partner with the same.
    The Cells around two partners are partners too.
    """
    flow_a, flow_b = flows
    dump_a, dump_b = dumps
    calls_a = _by_key(flow_a, dump_a)
    calls_b = _by_key(flow_b, dump_b)
    partners: dict[int, int] = {}
    for key in sorted(calls_a, key=_depth):  # the outer Cells first
        own = calls_a[key]
        other = calls_b.get(key, {})
        if not _are_crossed(own, other):
            continue
        places_a = list(own.values())
        places_b = [other[content] for content in own]
        lines_a = [_line(flow_a, dump_a, a) for a in places_a]
        lines_b = [_line(flow_b, dump_b, b) for b in places_b]
        if lines_a != lines_b:  # the same lines are given other inputs
            continue
        around_a = [_around(flows, a, partners) for a in places_a]
        around_b = [flow_b.cells[b] for b in places_b]
        if around_a == around_b:
            partners.update(zip(places_a, places_b))
    return list(partners.items())


def _depth(key: str) -> int:
    return key.count(".")


def _are_crossed(own: _Calls, other: _Calls) -> bool:
    """Return whether the calls of a Cell have the same inputs on both sides, in another order."""
    if len(own) < 2 or None in own:
        return False
    return own.keys() == other.keys() and list(own) != list(other)


def _around(flows: tuple[Flow, Flow], place: int, partners: Mapping[int, int]) -> str | None:
    """Return the Cell around a call of A, by its name in B."""
    flow_a, flow_b = flows
    name = flow_a.cells[place]
    if not name or name not in flow_a.position:
        return name
    cell = flow_a.position[name]
    if cell not in partners:
        return name
    return flow_b.names[partners[cell]]


def _line(flow: Flow, dump: Dump, place: int) -> str | None:
    """Return the text of the line that calls a Cell; None where it is not known."""
    name = flow.names[place]
    frame = user_frame(dump.stacks.get(name) or ())
    return frame.source if frame is not None else None


def _by_key(flow: Flow, dump: Dump) -> dict[str, _Calls]:
    """Return the calls of each Cell that is called several times."""
    found: dict[str, _Calls] = {}
    repeated = {parts.key for parts in flow.parts if parts.kind == CELL and parts.number}
    if not repeated:
        return found
    for place, parts in enumerate(flow.parts):
        if parts.direction != FORWARD or parts.kind != CELL or parts.key not in repeated:
            continue
        calls = found.setdefault(parts.key, {})
        contents = tuple(content_key(link.record) for link in flow.links[place])
        if None in contents or contents in calls:
            contents = ()
        calls[contents or None] = place
    return found
