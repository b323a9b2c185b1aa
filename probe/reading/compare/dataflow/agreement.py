# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Whether values of two dumps agree: of one slot, of records, of several records in any order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import EQUAL, Slot
from probe.reading.dumps.values import Record


def is_known(slot: Slot) -> bool:
    """Return whether two values agree, and both have numbers."""
    if not slot.are_tensors:
        return not slot.verdict
    return slot.verdict in EQUAL or slot.is_faint


def tolerance_of(a: Record, b: Record) -> float:
    """Return by how much two values that are equal may differ."""
    return max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))


def has_equal(record: Record, others: Iterable[Record], factor: float) -> bool:
    """Return whether a value of one side agrees with one of the other side."""
    for other in others:
        if _is_alike(record, other):
            apart = distance(record, other).rel_l2
            if apart is not None and apart <= tolerance_of(record, other) * factor:
                return True
    return False


def have_the_same(in_a: Sequence[Record], in_b: Sequence[Record], factor: float) -> bool:
    """Return whether each value of one side agrees with one of the other side."""
    return all(has_equal(one, in_b, factor) for one in in_a) and all(
        has_equal(one, in_a, factor) for one in in_b
    )


def _is_alike(a: Record, b: Record) -> bool:
    """Return whether two tensors have one shape and dtype."""
    return bool(a.get("shape") == b.get("shape") and a.get("dtype") == b.get("dtype"))
