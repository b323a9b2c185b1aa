# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two tensors are at least, from their statistics alone.

Statistics prove differences, never equality: two tensors with equal statistics may be permutations of one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from probe.reading.dumps.values import Record, real

_INF = math.inf
#: how exact recorded means and norms are
_MEAN_ERROR, _NORM_ERROR = 4e-7, 1e-6


class Distance(NamedTuple):
    """How far apart two tensors are."""

    #: the norm of the difference by the larger norm: at least this from statistics, exactly this from arrays; inf where
    #: NaN, Inf or the shape differ; None where nothing is known
    rel_l2: float | None
    max_abs: float | None  # the largest difference of two elements, likewise
    exact: bool = False  # whether it comes from arrays


#: makes a Distance in half of the time
_new: Callable[..., Distance] = tuple.__new__
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
    try:
        numbers_a = a["Max"], a["Min"], a["Mean"], a["Norm"]
        numbers_b = b["Max"], b["Min"], b["Mean"], b["Norm"]
    except KeyError:
        numbers_a = a.get("Max"), a.get("Min"), a.get("Mean"), a.get("Norm")
        numbers_b = b.get("Max"), b.get("Min"), b.get("Mean"), b.get("Norm")
    if numbers_a == numbers_b:
        return UNKNOWN if numbers_a == (None, None, None, None) else SAME
    if type(numbers_a[3]) is not float or type(numbers_b[3]) is not float:
        return _of_other_numbers(numbers_a, numbers_b)
    try:
        high, low = abs(numbers_a[0] - numbers_b[0]), abs(numbers_a[1] - numbers_b[1])
        mean, norms = abs(numbers_a[2] - numbers_b[2]), abs(numbers_a[3] - numbers_b[3])
    except (TypeError, OverflowError):  # a document may hold anything
        return _of_other_numbers(numbers_a, numbers_b)
    scale: float = numbers_a[3] if numbers_a[3] > numbers_b[3] else numbers_b[3]
    if not scale + high + low + mean < _INF:
        return _of_nonfinite(numbers_a, numbers_b)
    extreme = high if high > low else low
    most = mean if mean > extreme else extreme
    if scale == 0.0:
        return Distance(0.0 if most == 0.0 else _INF, most)
    least = _spread(a, numbers_a, numbers_b, mean)
    least = least if least > norms else norms
    return _new(Distance, ((least if least > extreme else extreme) / scale, most, False))


def _spread(record: Record, a: tuple[Any, ...], b: tuple[Any, ...], mean_gap: float) -> float:
    """Return the least norm of the difference that means and norms leave, less their rounding."""
    try:
        count = math.prod(record["shape"])
    except (KeyError, TypeError):
        return 0.0
    (high_a, low_a, mean_a, norm_a), (high_b, low_b, mean_b, norm_b) = a, b
    high, low = high_a if high_a > high_b else high_b, low_a if low_a < low_b else low_b
    mean_gap -= _MEAN_ERROR * (high if high > -low else -low)
    square_a, square_b = norm_a * norm_a, norm_b * norm_b
    rest_a, rest_b = square_a - count * mean_a * mean_a, square_b - count * mean_b * mean_b
    rest_a, rest_b = math.sqrt(rest_a) if rest_a > 0.0 else 0.0, math.sqrt(rest_b) if rest_b > 0.0 else 0.0
    larger = rest_a if rest_a > rest_b else rest_b
    gap = abs(rest_a - rest_b)
    if larger > 0.0:
        gap -= _NORM_ERROR * (square_a if square_a > square_b else square_b) / larger
    square = (count * mean_gap * mean_gap if mean_gap > 0.0 else 0.0) + (gap * gap if gap > 0.0 else 0.0)
    return math.sqrt(square)


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
    """Two tensors with NaN or Inf are apart unless they have them alike; then the finite numbers are compared.

    An infinite Norm or Mean of finite data is unknown: a device adds in float32, and the sum left its range.
    """
    most, scale = 0.0, 0.0
    is_finite = all(math.isfinite(real(end) or 0.0) for end in (*a[:2], *b[:2]))
    for place, (x, y) in enumerate(zip(a, b)):
        left, right = real(x), real(y)
        if left is None or right is None or (is_finite and place >= 2 and math.inf in (abs(left), abs(right))):
            continue
        if math.isfinite(left) and math.isfinite(right):
            most, scale = max(most, abs(left - right)), max(scale, abs(left), abs(right))
        elif not (left == right or (math.isnan(left) and math.isnan(right))):
            return APART
    return Distance(most / scale if scale else 0.0, most)
