# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which ranks of a group have a part of a tensor that is not the other side's, as arrays or records tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.arrays import UNREADABLE
from probe.reading.compare.judging.exact import rel_l2
from probe.reading.compare.judging.parts import best_order, joined, like_parts
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.layouts.placed import array_of, piece
from probe.reading.compare.layouts.placements import has_placements
from probe.reading.compare.layouts.shards import WHOLE, agree, axis_between, together
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import COUNTS, Record, has_nonfinite, real

if TYPE_CHECKING:
    from probe.reading.compare.judging.judged_pairs import JudgedPairs


class Share(NamedTuple):
    """The record of one tensor on one rank."""

    folder: DumpFolder
    record: Record


def ranks_apart(
    slot: Slot, side: int, own: list[Share], other: list[Share], judged: JudgedPairs
) -> list[int] | None:
    """Return the places of the ranks that make a tensor differ; None where that is not known.

    ``own`` are the shares of the ranks that may be apart, on a side; ``other`` are those of the other side.
    """
    found = _by_layout(own, other) if judged.arrays else None
    if found is not None:
        return found
    own_records = [share.record for share in own]
    other_records = [share.record for share in other]
    compared, whole = (slot.b, slot.a) if side else (slot.a, slot.b)
    axis = axis_between(own_records[0].get("shape"), compared.get("shape"))
    if axis == WHOLE:
        return _by_records(own_records, whole)
    if axis >= 0:
        return (
            _by_arrays(slot, side, axis, judged)
            or _by_blocks(own_records, other_records, axis)
            or _by_bounds(own_records, whole)
            or None
        )
    if all(has_placements(record) for record in own_records):
        return _by_bounds(own_records, whole) or None
    return None


def _by_layout(own: list[Share], other: list[Share]) -> list[int] | None:
    """Return the places of the ranks whose arrays are not the parts that their layouts name; None where none is."""
    if len(other) != 1 or not all(has_placements(share.record) for share in own):
        return None
    found = []
    try:
        whole = array_of(other[0].folder.path, other[0].record)
        for place, (folder, record) in enumerate(own):
            part = piece(whole, record)
            if part is None:
                return None
            apart = rel_l2(array_of(folder.path, record), part)
            if apart > of_dtype(record.get("dtype")):
                found.append(place)
    except UNREADABLE:
        return None
    return found or None


def _by_records(own: list[Record], whole: Record) -> list[int] | None:
    """Return the ranks whose record of a whole tensor is not the other side's; None if all differ, and not alike."""
    found = [place for place, record in enumerate(own) if not agree(record, whole)]
    if len(found) < len(own):
        return found
    first = own[0]
    return found if all(agree(first, record) for record in own[1:]) else None


def _by_arrays(slot: Slot, side: int, axis: int, judged: JudgedPairs) -> list[int]:
    """Return the shards whose arrays differ from their pieces of the other side's whole."""
    if judged.arrays is None:
        return []
    try:
        parts_a, parts_b = judged.arrays.parts(slot.a, slot.b)
        own, other = (parts_b, parts_a) if side else (parts_a, parts_b)
        enough = max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))
        blocks = best_order(own, other, axis, rel_l2, enough)
        whole = joined(other, axis, blocks)
        pieces = like_parts(whole, own, axis, blocks)
        gaps = [rel_l2(part, wanted) for part, wanted in zip(own, pieces)]
        return [place for place, gap in enumerate(gaps) if gap > enough]
    except (*UNREADABLE, KeyError):
        return []


def _by_blocks(own: list[Record], other: list[Record], axis: int) -> list[int]:
    """Return the shards of those blocks that differ, where both sides have shards of the same blocks."""
    count = math.gcd(len(own), len(other))
    if count == 1:
        return []
    size = len(own) // count
    other_size = len(other) // count
    found: list[int] = []
    for block in range(count):
        start = block * size
        other_start = block * other_size
        left = together(own[start : start + size], axis)
        right = together(other[other_start : other_start + other_size], axis)
        if not agree(left, right):
            found += range(start, start + size)
    return found


def _by_bounds(own: Sequence[Record], whole: Record) -> list[int]:
    """Return the shards that cannot be parts of a tensor: with a greater Max, Norm or count, or a lesser Min."""
    enough = of_dtype(whole.get("dtype"))
    return [place for place, record in enumerate(own) if _is_beyond(record, whole, enough)]


def _is_beyond(record: Record, whole: Record, enough: float) -> bool:
    if has_nonfinite(record) and not has_nonfinite(whole):
        return True
    high = real(record.get("Max"))
    low = real(record.get("Min"))
    norm = real(record.get("Norm"))
    most = real(whole.get("Max"))
    least = real(whole.get("Min"))
    whole_norm = real(whole.get("Norm"))
    if (
        high is None
        or low is None
        or norm is None
        or most is None
        or least is None
        or whole_norm is None
    ):
        return _has_more(record, whole)
    slack = enough * whole_norm
    return high > most + slack or low < least - slack or norm > whole_norm + slack


def _has_more(record: Record, whole: Record) -> bool:
    """Return whether a part has more elements of a kind than its tensor, such as zeros."""
    for key in COUNTS:
        own = real(record.get(key)) or 0
        if own > (real(whole.get(key)) or 0):
            return True
    return False
