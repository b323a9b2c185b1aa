# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The verdicts on the numbers of an optimizer's update: learning rate, weight decay, beta2."""

from __future__ import annotations

from probe.reading.compare.distances.bounds import Distance
from probe.reading.compare.judging.verdicts import DIFFERS, Slot
from probe.reading.updates import NUMBERS, number

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
