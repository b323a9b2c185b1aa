# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of a Cell that is called several times in a step, where the two runs call it in another order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import Flow, content_key
from probe.reading.dumps.frames import user_frame


def crossed_cells(flows: tuple[Flow, Flow], dumps: tuple[Dump, Dump]) -> list[tuple[int, int]]:
    """Return pairs of places of Cells whose inputs tell that they are partners, though their numbers differ.

    All calls of such a Cell are there: each has inputs that no other call of it has, and one partner with the same.
    The Cells around two partners are partners too.
    """
    first, second = (_by_key(flow, dump) for flow, dump in zip(flows, dumps))
    found: list[tuple[int, int]] = []
    partners: dict[int, int] = {}
    for key, given in sorted(first.items(), key=lambda item: item[0].count(".")):  # the outer Cells first
        other = second.get(key, {})
        if len(given) < 2 or list(given) == list(other) or given.keys() != other.keys() or None in given:
            continue
        pairs = [(place, other[content]) for content, place in given.items()]
        same_lines = all(_line(flows[0], dumps[0], a) == _line(flows[1], dumps[1], b) for a, b in pairs)
        if same_lines and all(_around(flows, a, partners) == flows[1].cells[b] for a, b in pairs):
            found += pairs  # else the same lines are given other inputs
            partners.update(pairs)
    return found


def _around(flows: tuple[Flow, Flow], place: int, partners: Mapping[int, int]) -> str | None:
    """Return the name, in B, of the Cell around a call of A."""
    name = flows[0].cells[place]
    own = flows[0].position.get(name) if name else None
    return flows[1].names[partners[own]] if own is not None and own in partners else name


def _line(flow: Flow, dump: Dump, place: int) -> str | None:
    """Return the text of the line that calls a Cell; None where it is not known."""
    frame = user_frame(dump.stacks.get(flow.names[place]) or ())
    return frame.source if frame is not None else None


def _by_key(flow: Flow, dump: Dump) -> dict[str, dict[Any, int]]:
    """Return Cell -> content of the inputs -> place; under None a call whose inputs tell nothing."""
    found: dict[str, dict[Any, int]] = {}
    repeated = {parts.key for parts in flow.parts if parts.kind == CELL and parts.number}
    for place, parts in enumerate(flow.parts) if repeated else ():
        if parts.kind != CELL or parts.direction != FORWARD or parts.key not in repeated:
            continue
        contents = tuple(content_key(link.record) for link in flow.links[place])
        own = found.setdefault(parts.key, {})
        own[None if not contents or None in contents or contents in own else contents] = place
    return found
