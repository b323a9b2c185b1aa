# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""One plain sentence for each origin in the update of an optimizer."""

from __future__ import annotations

import math

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.origins.updates import is_missing, number_name
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps import text
from probe.reading.dumps.entry_name import API, GRADIENT
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, STATES, number
from probe.reading.dumps.values import is_tensor, real

_SHOWN = 3


def update_sentence(graph: Graph, node: int, slot: Slot, change: str, step: int | None) -> str:
    """Return the sentence about a place of an update that differs.

    Args:
        graph: the dataflow.
        node: the update.
        slot: the place.
        change: the call that changes the gradients on one side, in words; "" where none is known.
        step: the step.
    """
    slots, name = graph.slots[node], graph.name(node)
    when = "" if step is None else f" in step {step}"
    if slot.place.startswith(NUMBERS):
        return f"{_number(slots, slot)}{when}: {name}"
    if is_missing(slot):
        missing = [item for item in slots if is_missing(item) and is_tensor(item.a) == is_tensor(slot.a)]
        side = "AB"[int(is_tensor(slot.a))]
        verb = "is" if len(missing) == 1 else "are"
        return f"{_parameters(missing)} {verb} missing in the optimizer of {side}, or without a gradient{when}: {name}"
    if slot.place.startswith(GRADIENTS):
        left, right = (text.number(_norm(slots, side)) for side in (0, 1))
        has_gradients = any(graph.parts(other).kind == GRADIENT for other in range(node))
        agree = "parameters_grad agree" if has_gradients else "the backward agrees"
        hint = "" if any(graph.parts(other).kind == API for other in range(node)) else "; level mix records such calls"
        cause = change or f"something that no entry shows changes them in A or in B{hint}"
        return f"the gradients that entered have Norm {left} / {right}{when}, {agree}: {cause}: {name}"
    if slot.place.startswith(STATES):
        state = slot.place[len(STATES) :]
        left, right = (text.number(side.get("Norm")) if is_tensor(side) else "none" for side in (slot.a, slot.b))
        more = sum(item.verdict in HARD and item.place.startswith(STATES) for item in slots) - 1
        others = f" and {more} more states differ" if more else " differs"
        return f"{state}{others} before the update{when}, Norm {left} / {right}: was the state reset or loaded? {name}"
    place = slot.place.partition(".")[2].partition(".")[2] or slot.place
    return f"{place} differs after the update{when}, though gradients, numbers and states agree: {name}"


def _number(slots: list[Slot], slot: Slot) -> str:
    """Return a number of the update in A and in B, and whose it is where the parameters have others."""
    name = number_name(slot.place)
    left, right = (text.number(number(side)) for side in (slot.a, slot.b))
    own = [item for item in slots if item.place.startswith(f"{NUMBERS}{name}.")]
    off = [item for item in own if item.verdict in HARD]
    if not own:
        return f"{name} {left} / {right}"
    count = f" and {len(off) - 1} more of {len(own)} parameters" if len(off) > 1 else ""
    return f"{name} of {slot.place[len(NUMBERS) + len(name) + 1 :]}{count} {left} / {right}"


def _parameters(slots: list[Slot]) -> str:
    names = [slot.place[len(GRADIENTS) :] for slot in slots]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _norm(slots: list[Slot], side: int) -> float | None:
    """Return the norm of all gradients that entered on one side."""
    records = [(slot.a, slot.b)[side] for slot in slots if slot.place.startswith(GRADIENTS)]
    norms = [real(record.get("Norm")) for record in records if is_tensor(record)]
    return None if None in norms else math.sqrt(sum(norm * norm for norm in norms if norm is not None))


def line_of(graph: Graph, node: int, line: str) -> str:
    """Return that only one side has a call, with its line of code."""
    side = "AB"[int(graph.pairs[node].b != NONE)]
    return f"only {side} has {graph.name(node)}" + (f" ({line})" if line else "")
