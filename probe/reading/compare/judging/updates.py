# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The places of an optimizer's update: its numbers count, and so do the gradients that enter it."""

from __future__ import annotations

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.judging.verdicts import HARD, Slot, Verdict
from probe.reading.dumps.updates import GRADIENTS, NUMBERS, number

#: numbers so near to each other are the same: one was computed, or is a float32
_NEAR = 1e-6


def judge_numbers(slots: list[Slot]) -> list[Slot]:
    """Return the places of an update; a number of it that differs is a difference, and its names are none."""
    return [_judged(slot) if slot.place.startswith(NUMBERS) else slot for slot in slots]


def _judged(slot: Slot) -> Slot:
    left = number(slot.a)
    right = number(slot.b)
    if left is not None and right is not None and left != right:
        gap = abs(left - right)
        relative = gap / (max(abs(left), abs(right)) or 1.0)  # 0 beside NaN
        if not relative <= _NEAR:
            apart = Distance(relative, gap, True)
            return slot._replace(verdict=Verdict.DIFFERS, distance=apart)
    return slot._replace(verdict="")


def enters_equal(slots: list[Slot]) -> bool:
    """Return whether the gradients that enter an update are known to agree."""
    given = [slot.verdict for slot in slots if slot.place.startswith(GRADIENTS)]
    return bool(given) and HARD.isdisjoint(given) and Verdict.UNKNOWN not in given
