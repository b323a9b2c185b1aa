# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""How far apart two tensors are at least, from their statistics alone.

Statistics prove differences, never equality: two tensors with equal statistics may be permutations of one another.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from probe.reading.values import Record, real

_INF = math.inf
#: how exact recorded means and norms are
_MEAN_ERROR, _NORM_ERROR = 4e-7, 1e-6


class Distance(NamedTuple):
    """How far apart two tensors are.

    Attributes:
        rel_l2: the norm of the difference by the larger norm: at least this from statistics, exactly this from arrays;
            inf where NaN, Inf or the shape differ; None where nothing is known.
        max_abs: the largest difference of two elements, likewise.
        exact: whether it comes from arrays.
    """

    rel_l2: float | None
    max_abs: float | None
    exact: bool = False


SAME = Distance(0.0, 0.0)
UNKNOWN = Distance(None, None)
APART = Distance(_INF, _INF)


def distance(a: Record, b: Record) -> Distance:
    """Return the least distance that the statistics of two tensors leave.

    >>> a = {"shape": [4], "Max": 2.0, "Min": 0.0, "Mean": 1.0, "Norm": 3.0}
    >>> distance(a, a).rel_l2, round(distance(a, {**a, "Max": 2.3}).rel_l2, 3)
    (0.0, 0.1)
    >>> distance(a, {**a, "Max": float("nan")}).rel_l2, distance(a, {"shape": [4]}).rel_l2
    (inf, None)
    """
    numbers_a = a.get("Max"), a.get("Min"), a.get("Mean"), a.get("Norm")
    numbers_b = b.get("Max"), b.get("Min"), b.get("Mean"), b.get("Norm")
    if numbers_a == numbers_b:
        return UNKNOWN if numbers_a == (None, None, None, None) else SAME
    if type(numbers_a[3]) is not float or type(numbers_b[3]) is not float:
        return _of_other_numbers(numbers_a, numbers_b)
    norm_a: float = numbers_a[3]
    norm_b: float = numbers_b[3]
    scale = norm_a if norm_a > norm_b else norm_b
    high = _gap(numbers_a[0], numbers_b[0])
    low = _gap(numbers_a[1], numbers_b[1])
    mean = _gap(numbers_a[2], numbers_b[2])
    if not scale < _INF or not high < _INF or not low < _INF or not mean < _INF:
        return _of_nonfinite(numbers_a, numbers_b)
    most = max(high, low, mean)
    if scale == 0.0:
        return Distance(0.0 if most == 0.0 else _INF, most)
    apart = high if high > low else low
    spread = _spread(a, numbers_a, numbers_b, mean)
    return Distance((apart if apart > spread else spread) / scale, most)


def _gap(a: Any, b: Any) -> float:
    """Return how far apart two numbers are; NaN where that has no answer."""
    try:
        return abs(a - b)  # type: ignore[no-any-return]
    except (TypeError, OverflowError):
        return math.nan


def _spread(record: Record, a: tuple[Any, ...], b: tuple[Any, ...], mean_gap: float) -> float:
    """Return the least norm of the difference that means and norms leave, less what rounding may have made of them."""
    try:
        count = math.prod(record["shape"])
    except (KeyError, TypeError):
        return abs(a[3] - b[3])  # type: ignore[no-any-return]
    largest = max(abs(a[0]), abs(a[1]), abs(b[0]), abs(b[1]))
    mean_gap = max(mean_gap - _MEAN_ERROR * largest, 0.0)
    square_a, square_b = a[3] * a[3], b[3] * b[3]
    rest_a = math.sqrt(max(square_a - count * a[2] * a[2], 0.0))
    rest_b = math.sqrt(max(square_b - count * b[2] * b[2], 0.0))
    larger = max(rest_a, rest_b)
    gap = abs(rest_a - rest_b)
    if larger > 0.0:
        gap = max(gap - _NORM_ERROR * max(square_a, square_b) / larger, 0.0)
    norms = abs(a[3] - b[3])
    spread = math.sqrt(count * mean_gap * mean_gap + gap * gap)
    return spread if spread > norms else norms


def _of_other_numbers(a: tuple[Any, ...], b: tuple[Any, ...]) -> Distance:
    """Bools have no norm, chosen statistics may have any, and a document may hold anything."""
    known = [(x, y) for x, y in zip(a, b) if real(x) is not None and real(y) is not None]
    if not known:
        return UNKNOWN
    gaps = [abs((real(x) or 0.0) - (real(y) or 0.0)) for x, y in known]
    most = max(gaps)
    if not most < _INF:
        return _of_nonfinite(a, b)
    scale = max(max(abs(real(x) or 0.0), abs(real(y) or 0.0)) for x, y in known)
    return Distance(most / scale if scale else 0.0, most)


def _of_nonfinite(a: tuple[Any, ...], b: tuple[Any, ...]) -> Distance:
    """Two tensors with NaN or Inf are apart unless they have them alike; then the finite numbers are compared."""
    most, scale = 0.0, 0.0
    for x, y in zip(a, b):
        left, right = real(x), real(y)
        if left is None or right is None:
            continue
        if math.isfinite(left) and math.isfinite(right):
            most, scale = max(most, abs(left - right)), max(scale, abs(left), abs(right))
        elif not (left == right or (math.isnan(left) and math.isnan(right))):
            return APART
    return Distance(most / scale if scale else 0.0, most)
