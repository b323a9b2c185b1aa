# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How far apart two tensors are, by their statistics.

Statistics alone prove differences, never equality: two tensors with equal ones may be permutations of one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from probe.reading.dumps.values import Record, real

_INF = math.inf
#: how exact recorded means are
_MEAN_ERROR = 4e-7
#: how exact recorded norms are
_NORM_ERROR = 1e-6
#: Max, Min, Mean, Norm
_Numbers = tuple[Any, ...]
#: makes a Distance in half of the time
_new: Callable[..., Distance] = tuple.__new__


class Distance(NamedTuple):
    """How far apart two tensors are."""

    #: the norm of the difference by the larger norm: at least this from statistics, exactly this from arrays; inf where
    #: NaN, Inf or the shape differ; None where nothing is known
    rel_l2: float | None
    max_abs: float | None  # the largest difference of two elements, likewise
    exact: bool = False  # whether it comes from arrays
    #: by the user's function, of two arrays that are not equal; None where it was not called
    own: float | None = None


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
    high_a, low_a, mean_a, norm_a = numbers_a
    high_b, low_b, mean_b, norm_b = numbers_b
    if type(norm_a) is not float or type(norm_b) is not float:
        return _of_other_numbers(numbers_a, numbers_b)
    try:
        high = abs(high_a - high_b)
        low = abs(low_a - low_b)
        mean = abs(mean_a - mean_b)
        norm = abs(norm_a - norm_b)
    except (TypeError, OverflowError):  # a document may hold anything
        return _of_other_numbers(numbers_a, numbers_b)
    scale: float = norm_a if norm_a > norm_b else norm_b
    if not scale + high + low + mean < _INF:
        return _of_nonfinite(numbers_a, numbers_b)
    extreme = high if high > low else low
    most = mean if mean > extreme else extreme
    if scale == 0.0:
        return Distance(0.0 if most == 0.0 else _INF, most)
    least = _spread(a, numbers_a, numbers_b, mean)
    least = least if least > norm else norm
    least = least if least > extreme else extreme
    return _new(Distance, (least / scale, most, False, None))


def _spread(record: Record, a: _Numbers, b: _Numbers, mean_gap: float) -> float:
    """Return the least norm of the difference that means and norms leave, less their rounding."""
    try:
        count = math.prod(record["shape"])
    except (KeyError, TypeError):
        return 0.0
    high_a, low_a, mean_a, norm_a = a
    high_b, low_b, mean_b, norm_b = b
    high = high_a if high_a > high_b else high_b
    low = low_a if low_a < low_b else low_b
    mean_gap -= _MEAN_ERROR * (high if high > -low else -low)
    square_a = norm_a * norm_a
    square_b = norm_b * norm_b
    square_of_rest_a = square_a - count * mean_a * mean_a
    square_of_rest_b = square_b - count * mean_b * mean_b
    rest_a = math.sqrt(square_of_rest_a) if square_of_rest_a > 0.0 else 0.0
    rest_b = math.sqrt(square_of_rest_b) if square_of_rest_b > 0.0 else 0.0
    larger = rest_a if rest_a > rest_b else rest_b
    gap = abs(rest_a - rest_b)
    if larger > 0.0:
        gap -= _NORM_ERROR * (square_a if square_a > square_b else square_b) / larger
    square = count * mean_gap * mean_gap if mean_gap > 0.0 else 0.0
    if gap > 0.0:
        square += gap * gap
    return math.sqrt(square)


def _of_other_numbers(a: _Numbers, b: _Numbers) -> Distance:
    """Bools have no norm, chosen statistics may have any, and a document may hold anything."""
    pairs = zip(map(real, a), map(real, b))
    known = [(x, y) for x, y in pairs if x is not None and y is not None]
    if not known:
        return UNKNOWN
    most = max(abs(x - y) for x, y in known)
    if not most < _INF:
        return _of_nonfinite(a, b)
    scale = max(max(abs(x), abs(y)) for x, y in known)
    relative = most / scale if scale else 0.0
    return Distance(relative, most)


def _of_nonfinite(a: _Numbers, b: _Numbers) -> Distance:
    """Two tensors with NaN or Inf are apart unless they have them alike; then the finite numbers are compared."""
    most = 0.0
    scale = 0.0
    numbers_a = [real(number) for number in a]
    numbers_b = [real(number) for number in b]
    ends = [*numbers_a[:2], *numbers_b[:2]]
    has_finite_ends = all(math.isfinite(end or 0.0) for end in ends)
    for place, (x, y) in enumerate(zip(numbers_a, numbers_b)):
        if x is None or y is None:
            continue
        # an infinite Norm or Mean is unknown: a device's float32 sum left its range
        is_sum = has_finite_ends and place >= 2
        if is_sum and _INF in (abs(x), abs(y)):
            continue
        if math.isfinite(x) and math.isfinite(y):
            most = max(most, abs(x - y))
            scale = max(scale, abs(x), abs(y))
        elif x != y and not (math.isnan(x) and math.isnan(y)):
            return APART
    relative = most / scale if scale else 0.0
    return Distance(relative, most)
