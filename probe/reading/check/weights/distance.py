# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two parameters are, piece by piece, and how one may be the other in another order."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.weights.weight import Array, Weight

#: bytes of a parameter that is held as a whole: to look at its rows
_WHOLE = 50_000_000


class Distance(NamedTuple):
    """The distance of two parameters of one shape."""

    others: int  # how many elements differ
    first: int  # the number of the first of them, in C order
    values: tuple[float | complex, float | complex]  # its values in A and B
    largest: float  # the greatest difference; NaN where one side alone is NaN
    relative: float  # norm of the difference by norm of A


def aligned(a: Iterator[Array], b: Iterator[Array], most: int = -1) -> Iterator[tuple[Array, Array]]:
    """Yield pieces of equal length of two sequences of pieces, of ``most`` elements at most."""
    left = right = np.zeros(0, np.int8)
    while most:
        left = next(a, left) if not left.size else left
        right = next(b, right) if not right.size else right
        size = min(left.size, right.size)
        size = size if most < 0 else min(size, most)
        if not size:
            return
        yield left[:size], right[:size]
        left, right, most = left[size:], right[size:], most - size


def distance(a: Weight, b: Weight, most: int = -1) -> Distance:
    """Return the distance of two parameters whose elements can be read, of the first ``most`` ones; -1 for all."""
    if a.pieces is None or b.pieces is None:
        raise ValueError("only the checksums of a parameter are known")
    others, first, place = 0, -1, 0
    values: tuple[float | complex, float | complex] = (0.0, 0.0)
    largest = square = norm = 0.0
    for x, y in aligned(a.pieces(), b.pieces(), most):
        wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        left, right = x.astype(wide), y.astype(wide)
        with np.errstate(all="ignore"):
            other = (left != right) & ~(np.isnan(left) & np.isnan(right))
            gap = np.where(other, np.abs(left - right), 0.0)
        found = int(np.count_nonzero(other))
        if found and first < 0:
            at = int(np.argmax(other))
            first, values = place + at, (left[at].item(), right[at].item())
        others += found
        largest = float(np.fmax(largest, gap.max())) if not np.isnan(gap).any() else float("nan")
        with np.errstate(all="ignore"):
            square, norm = square + float((gap * gap).sum()), norm + float((np.abs(left) ** 2).sum())
        place += x.size
    return Distance(others, first, values, largest, (square / norm) ** 0.5 if norm else float("inf") if square else 0.0)


def which_elements(count: int, first: int, shape: Sequence[int], values: tuple[complex, complex]) -> Sentence:
    """Return which elements of two arrays differ: how many, the number in C order of the first, its values."""
    place = list(map(int, np.unravel_index(first, tuple(shape)))) if shape else []
    return say(
        "check.elements" if count > 1 else "check.one_element", count=count, all=math.prod(shape), place=str(place),
        left=fact(values[0]), right=fact(values[1]),
    )  # fmt: skip


def fact(value: complex) -> Any:
    """Return a number as a fact; as text where JSON has none: NaN, Inf, complex numbers."""
    return value if isinstance(value, float) and math.isfinite(value) else f"{value:.6g}"


def order(a: Weight, b: Weight) -> Sentence:
    """Return how B has the elements of A in another order; nothing where it has others. Both have checksums."""
    if a.sum < 0 or a.sum != b.sum or a.size != b.size:
        return NOTHING
    if a.crc == b.crc:
        return say("check.other_shape") if a.shape != b.shape else NOTHING
    can_look = a.pieces is not None and b.pieces is not None and a.bytes <= _WHOLE and a.dtype == b.dtype
    is_turned = len(a.shape) > 1 and b.shape == a.shape[::-1]
    if not can_look:
        return say("check.transposed") if is_turned and a.shape != b.shape else say("check.other_order")
    return _order_of(_bits(a), _bits(b))


def _order_of(left: Array, right: Array) -> Sentence:
    """Return the same for the bits of two parameters."""
    if left.ndim > 1 and np.array_equal(left.T, right):
        return say("check.transposed")
    if left.ndim > 1 and left.shape == right.shape:
        rows = [[zlib.crc32(np.ascontiguousarray(row).tobytes()) for row in side] for side in (left, right)]
        if sorted(rows[0]) == sorted(rows[1]):
            row = next(place for place, key in enumerate(rows[0]) if rows[1][place] != key)
            return say("check.rows_moved", row=row, other=rows[1].index(rows[0][row]))
    same = np.array_equal(np.sort(left, axis=None), np.sort(right, axis=None))
    return say("check.other_order") if same else NOTHING


def _bits(weight: Weight) -> Array:
    array = weight.array()
    return array.view(f"u{min(array.dtype.itemsize, 8)}") if array.dtype.kind != "c" else array
