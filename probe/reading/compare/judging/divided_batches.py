# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Passes of a divided batch: one side divides its batch, and the optimizer gets the same gradients."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.judging.updates import enters_equal
from probe.reading.compare.judging.verdicts import Slot, Verdict, is_state
from probe.reading.compare.pairing.partners import NONE, Pair
from probe.reading.dumps.updates import STATES
from probe.reading.dumps.values import is_tensor


def forgive_divided_batches(
    updates: Collection[int], pairs: Sequence[Pair], slots: list[list[Slot]]
) -> Sentence:
    """Blame nobody, in ``slots``, where one side divides its batch and the optimizer gets the same gradients."""
    own = [number for number, pair in enumerate(pairs) if pair.a in updates and pair.b != NONE]
    if not own or not all(enters_equal(slots[number]) for number in own):
        return NOTHING
    rows_a, rows_b = batches(slots)
    if rows_a == 0 or rows_b == 0:
        return NOTHING
    # the side that divides has calls that the other has not
    side = "B" if rows_a > rows_b else "A"
    if not any(pair.b == NONE if side == "A" else pair.a == NONE for pair in pairs):
        return NOTHING
    for number, of_pair in enumerate(slots):
        if number not in own:
            slots[number] = of_other_batch(of_pair)
    return say("compare.divides", side=side, rows=max(rows_a, rows_b), own=min(rows_a, rows_b))


def batches(slots: Sequence[list[Slot]]) -> tuple[int, int]:
    """Return the rows of a batch in A and B, if one side divides it; (0, 0) if not."""
    slot = next(_inputs_of_other_shape(slots), None)
    if slot is None:
        return 0, 0
    rows_a, *more_a = _shape(slot.a)
    rows_b, *more_b = _shape(slot.b)
    if type(rows_a) is not int or type(rows_b) is not int or more_a != more_b:
        return 0, 0
    fewer, more = sorted((rows_a, rows_b))
    is_divided = fewer > 0 and more % fewer == 0
    return (rows_a, rows_b) if is_divided else (0, 0)


def _inputs_of_other_shape(slots: Sequence[list[Slot]]) -> Iterator[Slot]:
    for found in slots:
        for slot in found:
            if slot.is_input and slot.verdict == Verdict.SHAPE:
                yield slot


def _shape(record: Any) -> list[Any]:
    """Return the shape of a record; one without rows where it has none: a file holds anything."""
    shape = record.get("shape") if is_tensor(record) else None
    return shape if type(shape) is list and shape else [None]


def of_other_batch(slots: list[Slot]) -> list[Slot]:
    """Return the places of a call that was given another part of the batch: only a parameter that differs counts."""
    return [
        slot._replace(verdict=Verdict.OTHER_BATCH) if _is_of_batch(slot) else slot for slot in slots
    ]


def _is_of_batch(slot: Slot) -> bool:
    is_parameter = slot.place.startswith(STATES) and not is_state(slot.place)
    return slot.is_hard and not is_parameter
