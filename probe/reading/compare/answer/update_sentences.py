# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One plain sentence for each origin in the update of an optimizer."""

from __future__ import annotations

import math

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.origins.optimizer_facts import is_missing, number_name
from probe.reading.dumps import text
from probe.reading.dumps.entry_name import API, GRADIENT
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, STATES, number
from probe.reading.dumps.values import is_tensor, real

_SHOWN = 3


def update_sentence(graph: Graph, node: int, slot: Slot, change: Sentence, step: int | None) -> Sentence:
    """Return the sentence about a place of an update that differs.

    ``change`` tells the call that changes the gradients on one side; it is nothing where none is known.
    """
    slots, name = graph.slots[node], graph.name(node)
    when = NOTHING if step is None else say("compare.in_step", step=step)
    if slot.place.startswith(NUMBERS):
        return _number(slots, slot, when, name)
    if is_missing(slot):
        return _missing(slots, slot, when, name)
    if slot.place.startswith(GRADIENTS):
        return _gradients(graph, node, change, when)
    if slot.place.startswith(STATES):
        return _state(slots, slot, when, name)
    place = slot.place.partition(".")[2].partition(".")[2] or slot.place
    return say("compare.after_update", place=place, when=when, name=name)


def _state(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    """Return that states differ before an update."""
    state = slot.place[len(STATES) :]
    left, right = (text.fact(side.get("Norm")) if is_tensor(side) else say("compare.none") for side in (slot.a, slot.b))
    more = sum(item.verdict in HARD and item.place.startswith(STATES) for item in slots) - 1
    if more:
        return say("compare.states", state=state, more=more, left=left, right=right, when=when, name=name)
    return say("compare.state_before", state=state, left=left, right=right, when=when, name=name)


def _number(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    """Return a number of the update in A and in B, and whose it is where the parameters have others."""
    key = number_name(slot.place)
    left, right = (text.fact(number(side)) for side in (slot.a, slot.b))
    own = [item for item in slots if item.place.startswith(f"{NUMBERS}{key}.")]
    off = [item for item in own if item.verdict in HARD]
    whose = NOTHING
    if own:
        parameter, more = slot.place[len(NUMBERS) + len(key) + 1 :], len(off) - 1
        whose = say("compare.whose", parameter=parameter)
        if more > 0:
            whose = say("compare.whose_more", parameter=parameter, more=more, all=len(own))
    return say("compare.update_number", number=key, whose=whose, left=left, right=right, when=when, name=name)


def _missing(slots: list[Slot], slot: Slot, when: Sentence, name: str) -> Sentence:
    """Return the parameters that one optimizer lacks."""
    missing = [item for item in slots if is_missing(item) and is_tensor(item.a) == is_tensor(slot.a)]
    side, names = "AB"[int(is_tensor(slot.a))], [item.place[len(GRADIENTS) :] for item in missing]
    if len(names) == 1:
        return say("compare.missing", parameter=names[0], side=side, when=when, name=name)
    more = say("compare.more", more=len(names) - _SHOWN) if len(names) > _SHOWN else NOTHING
    return say("compare.missing_many", parameters=names[:_SHOWN], more=more, side=side, when=when, name=name)


def _gradients(graph: Graph, node: int, change: Sentence, when: Sentence) -> Sentence:
    """Return that other gradients enter, though the backward made the same ones."""
    left, right = (text.fact(_norm(graph.slots[node], side)) for side in (0, 1))
    if not change:
        has_calls = any(graph.parts(other).kind == API for other in range(node))
        change = say("compare.unseen") if has_calls else clauses(say("compare.unseen"), say("compare.level_mix"))
    has_gradients = any(graph.parts(other).kind == GRADIENT for other in range(node))
    agree = say("compare.gradients_agree") if has_gradients else say("compare.backward_agrees")
    name = graph.name(node)
    return say("compare.entered", left=left, right=right, when=when, agree=agree, cause=change, name=name)


def _norm(slots: list[Slot], side: int) -> float | None:
    """Return the norm of all gradients that entered on one side."""
    records = [(slot.a, slot.b)[side] for slot in slots if slot.place.startswith(GRADIENTS)]
    norms = [real(record.get("Norm")) for record in records if is_tensor(record)]
    return None if None in norms else math.sqrt(sum(norm * norm for norm in norms if norm is not None))
