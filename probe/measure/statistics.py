# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The four numbers of an array, exact for integers and right for every finite float."""

from __future__ import annotations

import math
from typing import Any, Union

import ml_dtypes
import numpy as np

from probe.measure.tensor_reader import Array

Number = Union[int, float, bool, None]
Numbers = dict[str, Number]

_maximum, _minimum = np.maximum.reduce, np.minimum.reduce
_HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
#: below this the squares of a float32 sum lose bits to underflow
_TINY = 1e-30
#: up to so many numbers Python is faster than numpy
_FEW = 96
#: read at once: what the first of the four reductions brings into the cache the others find there
_BLOCK = 262144
#: added by BLAS at once; it adds float32 in float32, which over more than this would cost digits
_PIECE = 65536
#: longer arrays are summed as a matrix of such rows: so many ones need not be read
_ROW = 1024
#: a dot with ones is BLAS's fastest sum, and says nothing when it overflows
_ONES = {np.dtype(kind): np.broadcast_to(np.ones((), kind), (_PIECE,)).copy() for kind in (np.float32, np.float64)}
_LARGEST = float(np.finfo(np.float64).max)


def statistics(array: Array) -> Numbers:
    """Return Max, Min, Mean and Norm (L2) of an array, and nan_count and inf_count where they are not zero.

    Args:
        array: any shape; bool, integer, float (bfloat16 as ml_dtypes.bfloat16) or complex. Never written to.

    Returns:
        ``{"Max": 3, "Min": 1, "Mean": 2.0, "Norm": 3.7}``. Max and Min of integers are exact. An empty array gives
        None four times; bool has any and all as Max and Min and no Mean and Norm; complex is measured by |x|.

    >>> statistics(np.array([3.0, 4.0], np.float32))
    {'Max': 4.0, 'Min': 3.0, 'Mean': 3.5, 'Norm': 5.0}
    """
    kind = array.dtype.kind
    if kind == "f" and array.size and array.dtype.itemsize > 2:
        return floats(array.ravel(order="K"))
    if array.size == 0 or kind not in "biufcV":
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    if kind == "b":
        return {"Max": bool(array.any()), "Min": bool(array.all()), "Mean": None, "Norm": None}
    if kind in "iu":
        return _integers(array)
    if kind == "c":
        array = np.asarray(np.abs(array))
    elif array.dtype in _HALVES:
        array = array.astype(np.float32)
    return floats(array.ravel(order="K"))


def _integers(array: Array) -> Numbers:
    wide = array.astype(np.float64).ravel()
    mean = float(np.add.reduce(wide)) / wide.size
    return {"Max": array.max().item(), "Min": array.min().item(), "Mean": mean, "Norm": math.sqrt(wide.dot(wide))}


def floats(flat: Array) -> Numbers:
    """Return the same for a flat array of at least one float32 or float64."""
    four = finite(flat)
    return _nonfinite(flat) if four is None else dict(zip(("Max", "Min", "Mean", "Norm"), four))


def finite(flat: Array) -> tuple[float, float, float, float] | None:
    """Return Max, Min, Mean and Norm of such an array, or None where an element is not finite."""
    size = flat.size
    if size <= _FEW:
        values = flat.tolist()
        total = sum(values)
        if total - total == 0.0:  # else something is not finite, or only the sum is not
            norm = math.hypot(*values)
            if norm < _LARGEST:
                return max(values), min(values), total / size, norm
    largest, smallest, total, square = _whole(flat) if size <= _BLOCK else _in_blocks(flat)
    if largest - largest != 0.0 or smallest - smallest != 0.0:
        return None
    if total - total == 0.0 and _TINY < square < math.inf:
        return largest, smallest, total / size, math.sqrt(square)
    return largest, smallest, *_scaled(flat, max(largest, -smallest))


def _whole(flat: Array) -> tuple[float, float, float, float]:
    """Max, Min, sum and sum of squares of up to a block."""
    largest, smallest = float(_maximum(flat)), float(_minimum(flat))
    size, ones = flat.size, _ONES[flat.dtype]
    if size <= _PIECE:
        return largest, smallest, float(flat.dot(ones[:size])), float(flat.dot(flat))
    pieces = [flat[place : place + _PIECE] for place in range(0, size, _PIECE)]
    if size % _ROW:
        total = _exact_sum([float(piece.dot(ones[: piece.size])) for piece in pieces])
    else:
        total = float(flat.reshape(-1, _ROW).dot(ones[:_ROW]).dot(ones[: size // _ROW]))
    return largest, smallest, total, _exact_sum([float(piece.dot(piece)) for piece in pieces])


def _in_blocks(flat: Array) -> tuple[float, float, float, float]:
    """The same of more than a block."""
    blocks = [_whole(flat[start : start + _BLOCK]) for start in range(0, flat.size, _BLOCK)]
    largest, smallest, totals, squares = map(list, zip(*blocks))
    # numpy's, as Python's max does not propagate NaN
    return float(_maximum(largest)), float(_minimum(smallest)), _exact_sum(totals), _exact_sum(squares)


def _exact_sum(parts: list[float]) -> float:
    total = math.fsum(parts) if all(map(math.isfinite, parts)) else math.nan
    return total


def _scaled(flat: Array, magnitude: float) -> tuple[float, float]:
    """Mean and norm of finite data whose plain sums leave the range of their dtype."""
    if magnitude == 0.0:
        return 0.0, 0.0
    unit = flat.astype(np.float64) / magnitude
    mean = float(np.add.reduce(unit)) / unit.size * magnitude
    return mean, min(math.sqrt(unit.dot(unit)) * magnitude, _LARGEST)


def _nonfinite(flat: Array) -> Numbers:
    largest, smallest = float(_maximum(flat)), float(_minimum(flat))
    nans = int(np.count_nonzero(np.isnan(flat)))
    infinities = int(np.count_nonzero(np.isinf(flat)))
    with np.errstate(invalid="ignore"):
        mean = math.nan if nans else float(np.add.reduce(flat.astype(np.float64)))
    norm = math.nan if nans else math.inf
    numbers: Numbers = {"Max": largest, "Min": smallest, "Mean": mean, "Norm": norm}
    if nans:
        numbers["nan_count"] = nans
    if infinities:
        numbers["inf_count"] = infinities
    return numbers


def crc32(array: Array) -> str:
    """Return the CRC-32 of the array's bytes in C order, eight hex digits (the field calls it md5).

    >>> crc32(np.zeros(1, np.float32))
    '2144df1c'
    """
    import zlib

    return f"{zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data):08x}" if array.size else "00000000"


def numpy_statistics(array: Array) -> dict[str, Any]:
    """Return the four numbers of an array of any dtype that numpy knows, None where it has none."""
    return {key: value for key, value in statistics(array).items() if not key.endswith("_count")}
