# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The facts about an update of an optimizer that differs, and the calls between the backward and the update."""

from __future__ import annotations

from collections.abc import Sequence

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.compare.origins.table import UpdateFacts
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT, parse
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, RESULTS, STATES


def first_of_kinds(hard: list[Slot]) -> list[Slot]:
    """Return the places of an update that are told: one of each number and missing parameter, and one of all others."""
    found: dict[str, Slot] = {}
    for slot in hard:
        is_own = slot.place.startswith(NUMBERS) or is_missing(slot)
        found.setdefault(number_name(slot.place) if is_own else "", slot)
    return list(found.values())


def without_explained(hard: list[Slot]) -> list[Slot]:
    """Return the places of an update that differ, without results that another number of the update explains."""
    numbers = [slot.place[len(NUMBERS) :] for slot in hard if slot.place.startswith(NUMBERS)]
    return [slot for slot in hard if not _is_explained(slot.place, numbers)]


def _is_explained(place: str, numbers: Sequence[str]) -> bool:
    """Return whether a place is the result for a parameter, and a number of it or of all parameters differs.

    >>> _is_explained("output.0.fc.bias", ["lr"]), _is_explained("output.0.fc.bias", ["lr.fc.weight"])
    (True, False)
    """
    if not place.startswith(RESULTS):
        return False
    parameter = place[len(RESULTS) :]
    return any(number.partition(".")[2] in ("", parameter) for number in numbers)


def number_name(place: str) -> str:
    """Return the number that a place holds, of all parameters or of one; other places stay.

    >>> number_name("kwargs.weight_decay.fc.bias"), number_name("input.0.fc.bias")
    ('weight_decay', 'input.0.fc.bias')
    """
    return place.split(".")[1] if place.startswith(NUMBERS) else place


def is_missing(slot: Slot) -> bool:
    """Return whether only one side has the gradient of a parameter."""
    return slot.place.startswith(GRADIENTS) and slot.verdict == Verdict.ONE_SIDE


def other_classes(graph: Graph, node: int) -> tuple[str, ...]:
    """Return the classes of an optimizer in A and in B; () where they are one."""
    if graph.is_alone(node):
        return ()
    pair = graph.pairs[node]
    flow_a, flow_b = graph.alignment.flows
    class_a = flow_a.parts[pair.a].api
    class_b = flow_b.parts[pair.b].api
    return (class_a, class_b) if class_a != class_b else ()


def update_facts(graph: Graph, node: int, slot: Slot, between: int) -> UpdateFacts:
    """Return the facts about a place of an update that differs; ``between`` is the call that ``call_between`` found."""
    is_alone = between != NONE and graph.is_alone(between)
    return UpdateFacts(
        is_number=slot.place.startswith(NUMBERS),
        other_class=bool(other_classes(graph, node)),
        missing=is_missing(slot),
        made_alone=is_alone,
        follows=between != NONE and not is_alone,
        is_gradient=slot.place.startswith(GRADIENTS),
        is_state=slot.place.startswith(STATES),
    )


def call_between(graph: Graph, node: int, slot: Slot) -> int:
    """Return the call that changes gradients between the backward and an update, on one side; -1 where none is known.

    It is the one that made the gradient. A call that changes gradients in place makes none: the first call after the
    backward that only one side has, or that has other arguments.
    """
    if not slot.place.startswith(GRADIENTS):
        return NONE
    for producer in graph.alone_producers(node, slot.place):
        if graph.parts(producer).direction != BACKWARD:
            return producer
    found = NONE
    for other in range(node - 1, -1, -1):
        if graph.parts(other).direction == BACKWARD:
            break
        if graph.soft[other] == other and not graph.is_update(other):
            found = other
    return found


def lacking_update(
    graph: Graph, node: int, slot: Slot | None, end: tuple[int, str], updates: Sequence[int]
) -> tuple[int, str]:
    """Return the update that lacks, on one side, the parameter whose gradient is missing, and its place there.

    The backward entry lacks a gradient on one side. ``end`` is the call at which the way of the gradient ends, and the
    place of the parameter there; without a known one, it is a parameter of a Cell around the call.
    """
    last, leaf = end
    parts = graph.parts(node)
    names = []
    if parts.kind == GRADIENT and slot is not None:
        own, _, _ = slot.place.rpartition(".")
        names = [f"{parts.path}.{own}"]
    elif leaf:
        owners = [link.parameter for link in graph.links(last, leaf) if link and link.parameter]
        names = [f"{parse(cell).path}.{name}" for cell, name in owners]
    flow, place = graph.flow(node)
    around = parse(flow.cells[place] or "").path
    # a backward whose gradient never came is written behind the update
    forward = flow.forward_of(place)
    begin = node if forward is None else graph.node_of(flow, forward)
    for update in updates:
        for found in graph.slots[update] if update > begin else ():
            if not is_missing(found):
                continue
            name = found.place[len(GRADIENTS) :]
            cell, _, _ = name.rpartition(".")
            is_around = f"{around}.".startswith(f"{cell}.")
            if name in names or (last == NONE and is_around):
                return update, found.place
    return NONE, ""
