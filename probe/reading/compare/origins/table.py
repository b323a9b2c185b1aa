# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of rules: from the facts about a call that differs, though no cause of it does, to the kind of origin.

A rule is a row. The rows are read from top to bottom, and the first whose condition holds decides. Its name is in the
``--json`` of ``probe compare`` under "why". There are four tables: for an input that differs, for a call whose outputs
differ, for a gradient, and for the update of an optimizer.

A gradient that one side lacks is followed to the call at which it ends, such as ``stop_gradient``, and to its update.
Parameters that only one side has are those that the model itself holds, in none of its Cells.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot, Verdict
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT, parse
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, STATES
from probe.reading.dumps.values import is_tensor

#: the kinds of rows that name nothing, or the change that the call follows from
NOTHING, EARLIER = "", "earlier"


class InputFacts(NamedTuple):
    """Facts about an input that differs."""

    of_container: bool = False  # it is a parameter in the entry of a Cell whose calls were recorded: they name it
    is_parameter: bool = False  # it is a parameter in the entry of a Cell, or has the content of one
    is_state: bool = False  # it has the shape of a moving statistic, and goes into BatchNorm at its place
    made_alone: bool = False  # one side has it from a call that the other does not have
    made_by_others: bool = False  # the sides have it from two calls that are no partners
    made_by_partners: bool = False  # both sides have it from the same call, whose outputs agree
    other_output: bool = False  # they use two different outputs of that call
    follows: bool = False  # there is a change that alone changes no value: a call more, an argument, another order
    is_data: bool = False  # it is a batch: integers, or the first input of the first call


class CallFacts(NamedTuple):
    """Facts about a forward call whose inputs agree and whose outputs differ."""

    carried: bool = False  # the outputs differ by no more than the inputs, which are within the tolerance
    argument: bool = False  # a plain argument or an attribute differs
    follows: bool = False  # there is a change that alone changes no value: a call more, an argument, another order
    is_random: bool = False  # the call draws random numbers
    is_collective: bool = False  # it communicates


class UpdateFacts(NamedTuple):
    """Facts about one thing that differs in the update of an optimizer."""

    is_number: bool = False  # it is a number, such as the learning rate
    other_class: bool = False  # the optimizers are of two classes
    missing: bool = False  # one optimizer has a parameter that the other has not
    made_alone: bool = False  # only one side has a call between the gradients and the optimizer
    follows: bool = False  # there is a change before it that alone changes no value, such as another argument of a clip
    is_gradient: bool = False  # a gradient that enters differs
    is_state: bool = False  # a state before the update differs


class GradientFacts(NamedTuple):
    """Facts about a backward entry that differs, though no gradient before it does."""

    missing: bool = False  # one side has no gradient where the other has one
    ended_alone: bool = False  # the operand comes from a call that only one side has
    at_parameter: bool = False  # the way of the gradient leads to one parameter alone
    follows: bool = False  # there is a change that alone changes no value of the forward
    carried: bool = False  # the gradient differs by no more than those that arrive, which are within the tolerance
    not_updated: bool = False  # the optimizer of one side lacks the parameter at which the way of the gradient ends


class OriginRow(NamedTuple):
    """A row of a table."""

    why: str  # the name of the rule, for ``--json``
    kind: str  # the kind of the origin; NOTHING, or EARLIER for the change that it follows from
    facts: tuple[str, ...]

    def holds(self, facts: Any) -> bool:
        """Return whether all facts of the row hold."""
        return all(getattr(facts, name) for name in self.facts)


EARLIER_CHANGE = "an earlier change that alone changes no value"
MADE_ALONE = "the input comes from a call that one side lacks"
_ROWS = json.loads(Path(__file__).with_name("rules.json").read_text("utf-8")).values()
_TABLES = [tuple(OriginRow(why, kind, tuple(facts.split())) for why, kind, facts in rows) for rows in _ROWS]
INPUT_RULES, CALL_RULES, GRADIENT_RULES, UPDATE_RULES = _TABLES
LACKING, FROZEN = GRADIENT_RULES[0], GRADIENT_RULES[2]
OTHER_CLASS, MISSING = UPDATE_RULES[1:3]


def first_rule(rules: Sequence[OriginRow], facts: InputFacts | CallFacts | GradientFacts | UpdateFacts) -> OriginRow:
    """Return the first rule of a table whose condition holds; the last of each table always does.

    >>> first_rule(CALL_RULES, CallFacts(is_random=True)).kind, first_rule(CALL_RULES, CallFacts()).kind
    ('random', 'computation')
    """
    return next(rule for rule in rules if rule.holds(facts))


_MOST = 400


def side_without(graph: Graph, node: int, slot: Slot | None) -> int | None:
    """Return which side lacks a gradient of a backward entry that the other has: 0 for A, 1 for B; None for none."""
    pair = graph.pairs[node]
    if NONE in (pair.a, pair.b):
        return int(pair.b == NONE)
    if slot is None or slot.verdict != Verdict.ONE_SIDE:
        return None
    return int(is_tensor(slot.a))


def operand_of(graph: Graph, node: int, slot: Slot | None) -> tuple[int, list[str]]:
    """Return the forward of a backward entry, and which of its inputs lack a gradient; (-1, []) where it is unknown."""
    flow, place = graph.flow(node)
    forward = flow.forward_of(place)
    if forward is None or graph.parts(node).direction != BACKWARD:
        return NONE, []
    own = graph.node_of(flow, forward)
    inputs = [link.place for link in flow.links[forward]]
    if slot is not None and slot.place.startswith("output."):
        wanted = f"input.{slot.place.partition('.')[2]}"
        inputs = [name for name in inputs if name == wanted or name.startswith(f"{wanted}.")]
    return own, inputs


def end_of(graph: Graph, node: int, slot: Slot | None) -> tuple[int, str]:
    """Return the call that only one side has and at which the gradient ends; (-1, "") where there is none.

    The way leads from the operand that lacks a gradient to the calls that made it, through all that lack one too. If
    it ends at one parameter alone, the call that uses it is returned, with the place of the parameter.
    """
    leaves: dict[tuple[str, str], tuple[int, str]] = {}
    own, inputs = operand_of(graph, node, slot)
    waiting = [(own, place) for place in inputs]
    seen = set(waiting)
    while waiting and len(seen) < _MOST:
        user, place = waiting.pop(0)
        producers = graph.producer_nodes(user, place)
        alone = graph.alone_producers(user, place)
        if alone:
            return alone[0], ""
        for link in graph.links(user, place):
            if link is not None and link.producer < 0 and link.parameter is not None:
                leaves.setdefault(link.parameter, (user, place))
        if producers[0] != producers[1] or producers[0] == NONE:
            continue
        sides = zip(graph.alignment.flows, graph.pairs[producers[0]][:2])
        if len({side.backward_of(own) is None for side, own in sides}) == 1:  # one side alone lacks its backward
            continue
        flow, made = graph.flow(producers[0])
        more = [(producers[0], link.place) for link in flow.links[made]]
        waiting += [item for item in more if item not in seen]
        seen.update(more)
    return next(iter(leaves.values())) if len(leaves) == 1 else (NONE, "")


OWN = "model_parameters."
WHY = "the model itself holds other parameters"


def is_own_alone(slot: Slot) -> bool:
    """Return whether a place is a parameter of the model itself that only one side has."""
    return slot.place.startswith(OWN) and is_tensor(slot.a) != is_tensor(slot.b)


def alone_names(graph: Graph) -> tuple[list[str], list[str]]:
    """Return the parameters of the model itself that only A has, and that only B has."""
    names: tuple[list[str], list[str]] = [], []
    for slot in (slot for slots in graph.slots for slot in slots if is_own_alone(slot)):
        names[int(is_tensor(slot.b))].append(slot.place[len(OWN) :])
    return names


def use_of(graph: Graph, node: int, slot: Slot) -> tuple[int, str]:
    """Return the first call outside of the parameter's Cell that is given its content, and where; else the entry."""
    side = int(is_tensor(slot.b))
    flow = graph.alignment.flows[side]
    wanted = content_key(slot.b if side else slot.a)
    for place, links in enumerate(flow.links):
        user = graph.node_of(flow, place)
        if wanted is None or graph.is_container(user) or graph.is_update(user):
            continue
        for link in links:
            owner = link.parameter[0] if link.parameter else None
            if content_key(link.record) == wanted and owner is not None and owner != flow.cells[place]:
                return user, link.place
    return node, slot.place


def first_of_kinds(hard: list[Slot]) -> list[Slot]:
    """Return the places of an update that are told: one of each number and missing parameter, and one of all others."""
    found: dict[str, Slot] = {}
    for slot in hard:
        is_own = slot.place.startswith(NUMBERS) or is_missing(slot)
        found.setdefault(number_name(slot.place) if is_own else "", slot)
    return list(found.values())


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
    names = tuple(flow.parts[place].api for flow, place in zip(graph.alignment.flows, graph.pairs[node][:2]))
    return names if names[0] != names[1] else ()


def update_facts(graph: Graph, node: int, slot: Slot, between: int) -> UpdateFacts:
    """Return the facts about a place of an update that differs; ``between`` is the call that ``call_between`` found."""
    is_alone = between != NONE and graph.is_alone(between)
    return UpdateFacts(
        is_number=slot.place.startswith(NUMBERS), other_class=bool(other_classes(graph, node)),
        missing=is_missing(slot), made_alone=is_alone, follows=between != NONE and not is_alone,
        is_gradient=slot.place.startswith(GRADIENTS), is_state=slot.place.startswith(STATES),
    )  # fmt: skip


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
    parts, names = graph.parts(node), []
    if parts.kind == GRADIENT and slot is not None:
        names = [f"{parts.path}.{slot.place.rpartition('.')[0]}"]
    elif end[1]:
        owners = (link.parameter for link in graph.links(*end) if link and link.parameter)
        names = [f"{parse(cell).path}.{name}" for cell, name in owners]
    flow, place = graph.flow(node)
    around = f"{parse(flow.cells[place] or '').path}."
    for update in updates:
        for found in graph.slots[update] if update > node else ():
            name = found.place[len(GRADIENTS) :]
            is_own = name in names or (end[0] == NONE and around.startswith(f"{name.rpartition('.')[0]}."))
            if is_missing(found) and is_own:
                return update, found.place
    return NONE, ""
