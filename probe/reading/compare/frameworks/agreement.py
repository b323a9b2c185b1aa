# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The places of a call that two frameworks have in other ways: transposed weights, and values on one side only."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.distances.bounds import Distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.dumps.entry_name import CELL, GRADIENT, EntryName
from probe.reading.dumps.values import is_tensor

#: gradients are sums over the batch, which the frameworks add in other orders: so many tolerances are no difference
_GRADIENTS = 10.0


def is_noise(a: Any, b: Any, found: Distance, factor: float) -> bool:
    """Return whether two gradients differ by no more than sums in another order.

    Args:
        a: the record in A.
        b: the record in B.
        found: how far apart they are.
        factor: by how much all tolerances are multiplied.
    """
    if not is_tensor(a) or not is_tensor(b) or found.rel_l2 is None:
        return False
    tolerance = max(of_dtype(a.get("dtype")), of_dtype(b.get("dtype")))
    return found.rel_l2 <= _GRADIENTS * tolerance * factor


def may_be_transposed(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether two tensors are parameters, or gradients of them, whose shapes are those of transposes.

    >>> from probe.reading.dumps.entry_name import parse
    >>> name = parse("Cell.fc.Dense.forward.0")
    >>> may_be_transposed(name, "parameters.weight", {"shape": [2, 3]}, {"shape": [3, 2]})
    True
    """
    if parts.kind != GRADIENT and not place.startswith("parameters."):
        return False
    left, right = a.get("shape"), b.get("shape")
    return type(left) is list and type(right) is list and len(left) == 2 and left == right[::-1]


def is_certain(a: Any, found: Distance) -> bool:
    """Return whether the shapes alone prove that one tensor is the other's transpose, if their numbers agree.

    A square one may be equal to the other as it stands. Arrays tell the two apart, statistics do not.
    """
    return found.exact or a["shape"][0] != a["shape"][1]


def is_told(parts: EntryName, place: str, a: Any, b: Any) -> bool:
    """Return whether a difference of two values that are no two tensors tells anything over two frameworks.

    Signatures of APIs differ, and MindSpore has parameters where PyTorch has buffers. Numbers at one place do tell.

    >>> from probe.reading.dumps.entry_name import parse
    >>> [is_told(parse("Tensor.__mul__.0.forward"), "input.1", 0.25, b) for b in (0.5, None)]
    [True, False]
    """
    if type(a) in (int, float) and type(b) in (int, float):
        return True
    return parts.kind == CELL and not place.startswith("parameters.") and (is_tensor(a) or is_tensor(b))
