# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A sum of gradient contributions, added in their order of arrival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from probe.measure.tensor_reader import Array, to_numpy


class GradientSum:
    """A sum of gradients in their own dtype, as the framework would add them.

    While tensors may not be read, terms are copied and added later: the order of addition stays the order of arrival.

    Args:
        read: tensor -> array.
        copy: tensor -> copy of the tensor, made without waiting.
        may_read: tells whether tensors may be read now.

    Attributes:
        array: the sum of the terms that were read, or None.
        dtype: the name of its dtype in MindSpore.
    """

    __slots__ = ("_copies", "_copy", "_may_read", "_minuend", "_read", "array", "dtype")

    def __init__(
        self,
        read: Callable[[Any], Array] = to_numpy,
        copy: Callable[[Any], Any] = lambda tensor: tensor,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        self._read, self._copy, self._may_read = read, copy, may_read
        self._copies: list[Any] = []
        self._minuend: Any = None
        self.array: Array | None = None
        self.dtype = ""

    def __bool__(self) -> bool:
        """Return whether anything was added."""
        return self.array is not None or bool(self._copies) or self._minuend is not None

    def add(self, tensor: Any) -> None:
        """Add one contribution; its memory may be reused afterwards."""
        if self._may_read():
            self.resolve()
            self._add(tensor)
        else:
            self._copies.append(self._copy(tensor))

    def subtract_from(self, total: Any) -> bool:
        """Become ``total`` without this sum; return whether anything is left, as far as that is known."""
        if not self._may_read():
            self._minuend = self._copy(total)
            return True
        self.resolve()
        return self._subtract_from(total)

    def resolve(self) -> bool:
        """Read the terms that were copied; return whether the sum holds anything."""
        copies, self._copies = self._copies, []
        for term in copies:
            self._add(term)
        minuend, self._minuend = self._minuend, None
        return self.array is not None if minuend is None else self._subtract_from(minuend)

    def _add(self, tensor: Any) -> None:
        array = self._read(tensor)
        self.dtype = str(tensor.dtype)
        self.array = np.array(array) if self.array is None else np.asarray(self.array + array)

    def _subtract_from(self, total: Any) -> bool:
        array = self._read(total)
        self.dtype = str(total.dtype)
        has_nan = array.dtype.kind in "fcV"  # V: bfloat16
        if self.array is not None and np.array_equal(array, self.array, equal_nan=has_nan):
            return False
        self.array = np.array(array) if self.array is None else np.asarray(array - self.array)
        return True
