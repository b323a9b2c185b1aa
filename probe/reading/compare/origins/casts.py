# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A run in one precision beside one in mixed precision: which casts carry the difference."""

from __future__ import annotations

from typing import NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.distances.bounds import distance
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.compare.origins.finder import Finding
from probe.reading.compare.origins.origin import Kind
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.dtypes import Change, change_of, dtypes_of, is_cast, size_of
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD
from probe.reading.dumps.values import is_tensor, tensors_in

#: a call adds a difference of its own if its outputs are so many times as far apart as its inputs
_GROWN = 10.0
#: the least part of the calls that give half precision in a run of mixed precision; casts do not count
_MIXED = 0.25


class CastDifference(NamedTuple):
    """A place where half precision enters on one side alone."""

    name: str
    cell: str
    before: str
    after: str
    side: str  # "A" or "B"
    #: by how much more the next values differ from the other side than those that were cast, relative
    adds: float
    rounds: float  # how far the cast itself moves its input, at least, relative


def mixed_side(graph: Graph) -> int | None:
    """Return the side that computes in mixed precision, 0 or 1, if the other one has no half; else None.

    A single cast, or one layer in half precision, is a change as any other.
    """
    has_half = [any(0 < size_of(dtype) <= 2 for dtype in flow.dtypes) for flow in graph.alignment.flows]
    has_wide = [any(size_of(dtype) > 2 for dtype in flow.dtypes) for flow in graph.alignment.flows]
    if has_half[0] == has_half[1] or not all(has_wide):
        return None
    side, sizes = has_half.index(True), list[int]()
    for node, pair in enumerate(graph.pairs):
        parts, place = graph.parts(node), pair.b if side else pair.a
        if parts.kind == API and parts.direction == FORWARD and place != NONE and not is_cast(parts.api):
            made = dtypes_of(graph.alignment.entry(side, place), ("output",))
            sizes += list(filter(None, map(size_of, made)))[:1]
    return side if sum(size <= 2 for size in sizes) >= _MIXED * len(sizes) > 0 else None


def casts_between(graph: Graph, dumps: tuple[Dump, Dump], side: int) -> list[CastDifference]:
    """Return the places where half precision enters on a side, those that add most first."""
    flow, found = graph.alignment.flows[side], []
    for place, name in enumerate(flow.names):
        parts = flow.parts[place]
        if parts.kind != API or parts.direction != FORWARD:
            continue
        change = change_of(dumps[side], name)
        if change is not None and change.enters:
            found.append(_difference(graph, dumps[side], side, place, change))
    return sorted(found, key=lambda item: (-item.adds, -item.rounds))


def is_of_casts(graph: Graph, node: int, side: int) -> bool:
    """Return whether a node differs because one side computes it in half precision, or is a cast of that side alone."""
    pair = graph.pairs[node]
    if pair[1 - side] == NONE:
        records = tensors_in(graph.entry(node), "input_args") + tensors_in(graph.entry(node), "output")
        return any(0 < size_of(record.get("dtype")) <= 2 for record in records)
    return any(
        size_of(slot.a.get("dtype")) != size_of(slot.b.get("dtype"))
        for slot in graph.slots[node]
        if is_tensor(slot.a) and is_tensor(slot.b)
    )


def beyond_casts(graph: Graph, findings: list[Finding], side: int) -> list[Finding]:
    """Return the findings that no cast explains.

    One that was led back to a cast may have been seen at a call that adds far more than its inputs carry. Then that
    call is named.
    """
    found = []
    for finding in findings:
        seen = finding.source
        if not is_of_casts(graph, finding.node, side):
            found.append(finding)
        elif seen != NONE and not is_of_casts(graph, seen, side) and _adds_most(graph, seen):
            slots = graph.slots[seen]
            argument = next((slot.place for slot in slots if slot.is_input and slot.verdict == Verdict.ARGUMENT), "")
            output = next((slot.place for slot in slots if slot.verdict in HARD), "")
            kind = Kind.GRADIENT if graph.parts(seen).direction == BACKWARD else Kind.COMPUTATION
            found.append(Finding(Kind.ARGUMENT if argument else kind, seen, argument or output, why=finding.why))
    return found


def _adds_most(graph: Graph, node: int) -> bool:
    return NONE not in graph.pairs[node][:2] and _apart(graph, node, False) > _GROWN * _apart(graph, node, True)


def _difference(graph: Graph, dump: Dump, side: int, place: int, change: Change) -> CastDifference:
    flow = graph.alignment.flows[side]
    node = graph.node_of(flow, place)
    before = [_apart(graph, node, True)] if NONE not in graph.pairs[node][:2] else []
    before += [
        _apart(graph, graph.node_of(flow, link.producer), False) for link in flow.links[place] if link.producer >= 0
    ]
    users = [graph.node_of(flow, user) for user in flow.used_by.get(place, ()) if flow.parts[user].direction == FORWARD]
    after = [_apart(graph, user, False) for user in users]
    entry = dump.data[change.name]
    given, made = tensors_in(entry, "input_args"), tensors_in(entry, "output")
    own = distance(given[0], made[0]).rel_l2 if given and made and change.is_cast else None
    adds = max(max(after, default=own or 0.0) - max(before, default=0.0), 0.0)
    return CastDifference(*change, "AB"[side], adds, own or 0.0)


def _apart(graph: Graph, node: int, inputs: bool) -> float:
    """Return how far the inputs, or the outputs, of a pair are apart; 0.0 where it has no partner."""
    slots = [slot for slot in graph.slots[node] if slot.is_input is inputs and is_tensor(slot.a) and is_tensor(slot.b)]
    return max((slot.distance.rel_l2 or 0.0 for slot in slots), default=0.0)
