# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The verdicts on the numbers of an optimizer's update, and on the batches whose gradients it is given."""

from __future__ import annotations

from collections.abc import Sequence

from probe.reading.compare.distances.bounds import Distance
from probe.reading.compare.judging.verdicts import DIFFERS, HARD, OTHER_BATCH, SHAPE, UNKNOWN_VALUE, Slot, is_state
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, STATES, number
from probe.reading.dumps.values import is_tensor

#: numbers so near to each other are the same: one was computed, or is a float32
_NEAR = 1e-6


def judge_numbers(slots: list[Slot]) -> list[Slot]:
    """Return the places of an update; a number of it that differs is a difference, and its names are none."""
    return [_judged(slot) if slot.place.startswith(NUMBERS) else slot for slot in slots]


def _judged(slot: Slot) -> Slot:
    left, right = number(slot.a), number(slot.b)
    if left is None or right is None or left == right:
        return slot._replace(verdict="")
    relative = abs(left - right) / max(abs(left), abs(right))
    if relative <= _NEAR:
        return slot._replace(verdict="")
    return slot._replace(verdict=DIFFERS, distance=Distance(relative, abs(left - right), True))


def enters_equal(slots: list[Slot]) -> bool:
    """Return whether the gradients that enter an update are known to agree."""
    given = [slot.verdict for slot in slots if slot.place.startswith(GRADIENTS)]
    return bool(given) and HARD.isdisjoint(given) and UNKNOWN_VALUE not in given


def batches(slots: Sequence[list[Slot]]) -> tuple[int, int]:
    """Return the rows of a batch in A and B, if one side divides it; (0, 0) if not.

    Args:
        slots: the places of each pair of calls, in order.
    """
    for slot in (slot for found in slots for slot in found if slot.is_input and slot.verdict == SHAPE):
        a, b = (record.get("shape") if is_tensor(record) else None for record in (slot.a, slot.b))
        if not (type(a) is type(b) is list and a and b and type(a[0]) is type(b[0]) is int):
            break  # the file holds anything
        if a[1:] == b[1:] and min(a[0], b[0]) > 0 and max(a[0], b[0]) % min(a[0], b[0]) == 0:
            return a[0], b[0]
        break
    return 0, 0


def of_other_batch(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call that was given another part of the batch: only a parameter that differs counts."""
    return [
        slot._replace(verdict=OTHER_BATCH) if slot.verdict in HARD and not _is_fixed(slot) else slot for slot in slots
    ]


def _is_fixed(slot: Slot) -> bool:
    """Return whether a place holds a parameter that the forward does not change."""
    return slot.place.startswith(STATES) and not is_state(slot.place)
