# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Exact distances of arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from probe.reading.compare.distances.distance import APART, Distance
from probe.reading.compare.judging.judge import SAME_BITS

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: so many numbers are compared at once
_BLOCK = 131_072


def rel_l2(a: Array, b: Array) -> float:
    """Return the distance of two arrays as a number; inf where it is not known."""
    apart = exact_distance(a, b).rel_l2
    return math.inf if apart is None else apart


def exact_distance(a: Array, b: Array) -> Distance:
    """Return the distance of two arrays; NaN at the same places is equal.

    >>> import numpy as np
    >>> round(exact_distance(np.array([3.0, 4.0]), np.array([3.0, 4.5])).rel_l2, 4)
    0.0925
    """
    import numpy as np

    if a.size != b.size:
        return APART
    left = a.reshape(-1)
    right = b.reshape(-1)
    # sums of squares: of A, of B, and of their difference
    square_a = 0.0
    square_b = 0.0
    square = 0.0
    most = 0.0
    for start in range(0, left.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        x = wide(left[block])
        y = wide(right[block])
        strange = ~(np.isfinite(x) & np.isfinite(y))
        if strange.any():
            if not np.array_equal(x[strange], y[strange], equal_nan=True):
                return Distance(math.inf, math.inf, True)
            x = np.where(strange, 0, x)
            y = np.where(strange, 0, y)
        gap = np.abs(x - y)
        most = max(most, float(gap.max(initial=0.0)))
        with np.errstate(over="ignore"):
            square_a += float(np.sum(np.abs(x) ** 2))
            square_b += float(np.sum(np.abs(y) ** 2))
            square += float(np.sum(gap**2))
    if square == 0.0 and most == 0.0:
        return SAME_BITS
    scale = math.sqrt(max(square_a, square_b))
    is_known = scale and math.isfinite(scale)
    relative = math.sqrt(square) / scale if is_known else math.inf
    return Distance(relative, most, True)


def wide(array: Array) -> Array:
    """Return an array with 64 bits for each number, or for each part of a complex one."""
    import numpy as np

    dtype = np.complex128 if array.dtype.kind == "c" else np.float64
    return np.asarray(array).astype(dtype)
