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


def relation(a: Array, b: Array) -> Sentence:  # noqa: PLR0911 (one line for each relation)
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
    if x.shape == y.shape and np.array_equal(x, -y):
        return say("compare.other_sign")
    if x.dtype.kind != "c" and np.array_equal(np.sort(x, axis=None), np.sort(y, axis=None)):
        has_same_rows = x.shape == y.shape and _has_same_rows(x, y)
        return say("compare.other_rows") if has_same_rows else say("compare.other_places")
    scale = float(np.vdot(x, x).real)
    if x.shape != y.shape or not scale or not math.isfinite(scale):
        return NOTHING
    factor = float(np.vdot(x, y).real) / scale
    rest = float(np.linalg.norm(y - factor * x))
    is_other = factor and abs(factor - 1) > _OTHER_FACTOR
    if is_other and rest <= _REST * abs(factor) * math.sqrt(scale):
        return say("compare.factor", factor=factor)
    return NOTHING


def _has_same_rows(x: Array, y: Array) -> bool:
    """Return whether two arrays of one shape, and with the same numbers, have the same rows."""
    if x.ndim < 2:
        return x.ndim == 1
    return sorted(map(bytes, x)) == sorted(map(bytes, y))
