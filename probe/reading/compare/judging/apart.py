# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Calls before the update that are no partners, and passes of a divided batch: their differences blame nobody."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.judging.optimizer_numbers import batches, enters_equal, of_other_batch
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Alignment, Pair
from probe.reading.dumps.entry_name import FORWARD


def before_updates(
    alignment: Alignment, updates: Collection[int], pairs: Sequence[Pair], slots: Sequence[list[Slot]]
) -> list[int]:
    """Return calls between gradients and optimizer that differ though what enters the optimizer agrees.

    They are no partners: they do one thing by other calls: a / 2 + b / 2, and (a + b) / 2.
    """
    wrong: list[int] = []
    for place, pair in enumerate(pairs):
        if pair.a not in updates or NONE in pair[:2] or not enters_equal(slots[place]):
            continue
        for before in range(place - 1, -1, -1):
            a, b, _ = pairs[before]
            if alignment.flows[int(a == NONE)].parts[b if a == NONE else a].direction != FORWARD:
                break
            if a not in updates and any(slot.verdict in HARD for slot in slots[before]):
                wrong.append(a)
    return wrong


def separate(alignment: Alignment, wrong: Sequence[int]) -> None:
    """Take pairs apart that are not one call, with their backwards."""
    flow, b_of = alignment.flows[0], alignment.b_of
    for a in dict.fromkeys(wrong):
        alignment.separate(a)
        backward = flow.backward_of(a)
        if backward is not None and backward in b_of:
            alignment.separate(backward)


def forgive_divided_batches(updates: Collection[int], pairs: Sequence[Pair], slots: list[list[Slot]]) -> Sentence:
    """Blame nobody where one side divides its batch into more passes, and the optimizer gets the same gradients.

    Args:
        updates: the places in A of updates that have a partner.
        pairs: the pairs.
        slots: for each the places with their verdicts, which are changed.
    """
    own = [place for place, pair in enumerate(pairs) if pair.a in updates and pair.b != NONE]
    if not own or not all(enters_equal(slots[place]) for place in own):
        return NOTHING
    rows = batches(slots)
    side = int(rows[0] > rows[1])  # that divides: it has calls that the other has not
    if 0 in rows or not any(pair[1 - side] == NONE for pair in pairs):
        return NOTHING
    for place, found in enumerate(slots):
        if place not in own:
            slots[place] = of_other_batch(found)
    return say("compare.divides", side="AB"[side], rows=max(rows), own=min(rows))
