# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The relation of one array to another: its transpose, its rows in another order, the elements that differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.judging.exact import wide

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

#: of larger arrays no relation is looked for
_LARGEST = 1 << 26
#: a factor is another one than 1 by more than this
_OTHER_FACTOR = 1e-4
#: how much a factor may leave unexplained, by the norm
_REST = 1e-5


def elements(a: Array, b: Array) -> Sentence:
    """Return which elements of B's array differ from A's; nothing where none or all do.

    >>> import numpy as np
    >>> str(elements(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.5], [3.0, 4.0]])))
    '1 of 4 elements differs, first [0, 1]: 2 / 2.5'
    """
    import numpy as np

    if a.shape != b.shape:
        return NOTHING
    x = wide(a).reshape(-1)
    y = wide(b).reshape(-1)
    other = (x != y) & ~(np.isnan(x) & np.isnan(y))
    count = int(np.count_nonzero(other))
    if not 0 < count < x.size:
        return NOTHING
    from probe.reading.check.weights.distance import which_elements

    first = int(np.argmax(other))
    values = (x[first].item(), y[first].item())
    return which_elements(count, first, a.shape, values)


def relation(a: Array, b: Array) -> Sentence:
    """Return the relation of B's array to A's.

    >>> import numpy as np
    >>> x = np.arange(6.0).reshape(2, 3)
    >>> [str(relation(x, y)) for y in (x.T, x[::-1], 0.5 * x, x + x**2)]
    ["B is the transpose of A's", 'B has the same rows in another order', "B is A's times 0.5", '']
    """
    import numpy as np

    if a.size != b.size or a.size > _LARGEST or not a.size:
        return NOTHING
    x = wide(a)
    y = wide(b)
    if x.ndim == 2 and x.T.shape == y.shape and np.array_equal(x.T, y):
        return say("compare.transposed")
    has_one_shape = x.shape == y.shape
    if has_one_shape and np.array_equal(x, -y):
        return say("compare.other_sign")
    if x.dtype.kind != "c" and _has_same_elements(x, y):
        has_same_rows = has_one_shape and _has_same_rows(x, y)
        return say("compare.other_rows") if has_same_rows else say("compare.other_places")
    factor = _factor(x, y) if has_one_shape else None
    return NOTHING if factor is None else say("compare.factor", factor=factor)


def _has_same_elements(x: Array, y: Array) -> bool:
    import numpy as np

    sorted_x = np.sort(x, axis=None)
    sorted_y = np.sort(y, axis=None)
    return np.array_equal(sorted_x, sorted_y)


def _factor(x: Array, y: Array) -> float | None:
    """Return the factor that makes B's array of A's, if one other than 1 does."""
    import numpy as np

    square = float(np.vdot(x, x).real)
    if not square or not math.isfinite(square):
        return None
    factor = float(np.vdot(x, y).real) / square
    rest = float(np.linalg.norm(y - factor * x))
    is_other = factor and abs(factor - 1) > _OTHER_FACTOR
    most = _REST * abs(factor) * math.sqrt(square)
    return factor if is_other and rest <= most else None


def _has_same_rows(x: Array, y: Array) -> bool:
    """Return whether two arrays of one shape, and with the same numbers, have the same rows."""
    if x.ndim < 2:
        return x.ndim == 1
    rows_x = sorted(map(bytes, x))
    rows_y = sorted(map(bytes, y))
    return rows_x == rows_y
