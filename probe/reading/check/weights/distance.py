# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two parameters are, compared piece by piece, and which elements differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from probe.findings.sentence import Sentence, say
from probe.reading.check.weights.weight import Array, Weight, numpy_dtype


class Distance(NamedTuple):
    """The distance of two parameters of one shape."""

    others: int  # how many elements differ
    first: int  # the number of the first of them, in C order
    values: tuple[float | complex, float | complex]  # its values in A and B
    largest: float  # the greatest difference; NaN where one side alone is NaN
    relative: float  # norm of the difference by norm of A


def aligned(
    a: Iterator[Array], b: Iterator[Array], most: int = -1
) -> Iterator[tuple[Array, Array]]:
    """Yield pieces of equal length of two sequences of pieces, of ``most`` elements at most."""
    left = np.zeros(0, np.int8)
    right = left
    while most:
        left = next(a, left) if not left.size else left
        right = next(b, right) if not right.size else right
        size = min(left.size, right.size)
        if most > 0:
            size = min(size, most)
        if not size:
            return
        yield left[:size], right[:size]
        left = left[size:]
        right = right[size:]
        most -= size


def distance(a: Weight, b: Weight, most: int = -1) -> Distance:
    """Return the distance of two parameters whose elements can be read, of the first ``most`` ones; -1 for all."""
    if a.pieces is None or b.pieces is None:
        raise ValueError("only the checksums of a parameter are known")
    others = 0
    first = -1
    place = 0
    values: tuple[float | complex, float | complex] = (0.0, 0.0)
    largest = 0.0
    square = 0.0
    norm = 0.0
    for x, y in aligned(a.pieces(), b.pieces(), most):
        wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        left = x.astype(wide)
        right = y.astype(wide)
        with np.errstate(all="ignore"):
            other = (left != right) & ~(np.isnan(left) & np.isnan(right))
            gap = np.where(other, np.abs(left - right), 0.0)
        others_here = int(np.count_nonzero(other))
        if others_here and first < 0:
            at = int(np.argmax(other))
            first = place + at
            values = (left[at].item(), right[at].item())
        others += others_here
        largest = float(np.maximum(largest, gap.max()))  # NaN stays NaN
        with np.errstate(all="ignore"):
            square += float((gap * gap).sum())
            norm += float((np.abs(left) ** 2).sum())
        place += x.size
    if norm:
        relative = (square / norm) ** 0.5
    else:
        relative = math.inf if square else 0.0
    return Distance(others, first, values, largest, relative)


def is_rounded(x: Weight, y: Weight) -> bool:
    """Return whether the parameter of more digits, rounded to the other's dtype, is the other."""
    if x.pieces is None or y.pieces is None or x.shape != y.shape:
        return False
    dtypes = (numpy_dtype(x.dtype), numpy_dtype(y.dtype))
    narrow = min(dtypes, key=lambda dtype: dtype.itemsize)
    with np.errstate(all="ignore"):
        for left, right in aligned(x.pieces(), y.pieces()):
            if not np.array_equal(left.astype(narrow), right.astype(narrow)):
                return False
    return True


def which_elements(
    count: int, first: int, shape: Sequence[int], values: tuple[complex, complex]
) -> Sentence:
    """Return which elements of two arrays differ: how many, the number in C order of the first, its values."""
    place = list(map(int, np.unravel_index(first, tuple(shape)))) if shape else []
    return say(
        "check.elements" if count > 1 else "check.one_element",
        count=count,
        all=math.prod(shape),
        place=str(place),
        left=fact(values[0]),
        right=fact(values[1]),
    )


def fact(value: complex) -> Any:
    """Return a number as a fact; as text where JSON has none: NaN, Inf, complex numbers."""
    return value if isinstance(value, float) and math.isfinite(value) else f"{value:.6g}"
