# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Two frameworks have some places in other ways: transposed weights, and values on one side only."""

from __future__ import annotations

import math
from typing import Any

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName
from probe.reading.dumps.values import is_tensor

#: gradients are sums over the batch, which the frameworks add in other orders: so many tolerances are no difference
_GRADIENTS = 10.0
#: frameworks give constants, such as the least number of a dtype, with other numbers of digits
_DIGITS = 1e-5
#: places of modules that one framework alone tells: parameters, as PyTorch has buffers; gradients of keywords, as
#: PyTorch's hooks see positions alone
_SEEN_BY_ONE = ("parameters.", "output_kwargs.")


def is_noise(a: Any, b: Any, found: Distance, factor: float) -> bool:
    """Return whether two gradients differ by no more than sums in another order; ``factor`` is of all tolerances."""
    if not is_tensor(a) or not is_tensor(b) or found.rel_l2 is None:
        return False
    tolerance_a = of_dtype(a.get("dtype"))
    tolerance_b = of_dtype(b.get("dtype"))
    return found.rel_l2 <= _GRADIENTS * max(tolerance_a, tolerance_b) * factor


def may_be_transposed(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether two tensors are parameters, or gradients of them, whose shapes are those of transposes.

    >>> from probe.reading.dumps.entry_name import parse
    >>> name = parse("Cell.fc.Dense.forward.0")
    >>> may_be_transposed(name, "parameters.weight", {"shape": [2, 3]}, {"shape": [3, 2]})
    True
    """
    if parts.kind != GRADIENT and not place.startswith("parameters."):
        return False
    left = a.get("shape")
    right = b.get("shape")
    if type(left) is not list or type(right) is not list:
        return False
    return len(left) == 2 and left == right[::-1]


def is_certain(a: Any, found: Distance) -> bool:
    """Return whether the shapes prove that one tensor is the other's transpose, if their numbers agree."""
    # a square one may be equal to the other as it stands: arrays tell the two apart, statistics do not
    rows, columns = a["shape"]
    return found.exact or bool(rows != columns)


def is_told(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether a difference of two values that are no two tensors tells anything over two frameworks.

    Signatures of APIs differ, and MindSpore has parameters where PyTorch has buffers. Numbers at one place do tell.

    >>> from probe.reading.dumps.entry_name import parse
    >>> [is_told(parse("Tensor.__mul__.0.forward"), "input.1", 0.25, b) for b in (0.5, None)]
    [True, False]
    >>> is_told(parse("Torch.where.0.forward"), "input.2", -3.4028234663852886e38, -3.40282e38)
    False
    """
    if type(a) in (int, float) and type(b) in (int, float):
        return not math.isclose(a, b, rel_tol=_DIGITS)
    if parts.kind != CELL or place.startswith(_SEEN_BY_ONE):
        return False
    return is_tensor(a) or is_tensor(b)
