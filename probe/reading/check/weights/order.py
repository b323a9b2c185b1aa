# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Whether a parameter has the elements of another one in another order: transposed, or with moved rows."""

from __future__ import annotations

import zlib

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.weights.weight import Array, Weight

#: bytes of a parameter that is held as a whole: to look at its rows
_WHOLE = 50_000_000


def order(a: Weight, b: Weight) -> Sentence:
    """Return how B has the elements of A in another order; nothing where it has others. Both have checksums."""
    if a.sum < 0 or a.sum != b.sum or a.size != b.size:
        return NOTHING
    if a.crc == b.crc:
        return say("check.other_shape") if a.shape != b.shape else NOTHING
    if a.pieces is None or b.pieces is None or a.bytes > _WHOLE or a.dtype != b.dtype:
        # the checksums alone tell
        is_turned = len(a.shape) > 1 and b.shape == a.shape[::-1]
        is_transposed = is_turned and a.shape != b.shape
        return say("check.transposed" if is_transposed else "check.other_order")
    return _order_of_bits(_bits(a), _bits(b))


def _order_of_bits(left: Array, right: Array) -> Sentence:
    has_rows = left.ndim > 1
    if has_rows and np.array_equal(left.T, right):
        return say("check.transposed")
    if has_rows and left.shape == right.shape:
        moved = _moved_row(left, right)
        if moved is not None:
            row, other = moved
            return say("check.rows_moved", row=row, other=other)
    sorted_left = np.sort(left, axis=None)
    sorted_right = np.sort(right, axis=None)
    is_same = np.array_equal(sorted_left, sorted_right)
    return say("check.other_order") if is_same else NOTHING


def _moved_row(left: Array, right: Array) -> tuple[int, int] | None:
    """Return the first row of A that stands at another place of B, and this place; None if B has other rows."""
    rows_a = _row_checksums(left)
    rows_b = _row_checksums(right)
    if sorted(rows_a) != sorted(rows_b):
        return None
    moved = next(row for row, key in enumerate(rows_a) if rows_b[row] != key)
    return moved, rows_b.index(rows_a[moved])


def _row_checksums(array: Array) -> list[int]:
    checksums = []
    for row in array:
        elements = np.ascontiguousarray(row).tobytes()
        checksums.append(zlib.crc32(elements))
    return checksums


def _bits(weight: Weight) -> Array:
    """Return the elements as whole numbers of their bits; complex ones as they are."""
    array = weight.array()
    if array.dtype.kind == "c":
        return array
    width = min(array.dtype.itemsize, 8)
    return array.view(f"u{width}")
