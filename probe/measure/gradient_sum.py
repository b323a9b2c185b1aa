# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A sum of gradient contributions, added in their order of arrival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from probe.measure.measurer import ArraySink, Measurer
from probe.measure.shells import local_tensor
from probe.measure.tensor_reader import Array


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

    def __init__(self, read: Callable[[Any], Array], copy: Callable[[Any], Any], may_read: Callable[[], bool]) -> None:
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
        tensor = local_tensor(tensor)
        if self._may_read():
            self.resolve()
            self._add(tensor)
        else:
            self._copies.append(self._copy(tensor))

    def take_copies(self) -> list[Any]:
        """Return the terms that were copied, no longer part of the sum; none if something else belongs to it."""
        if self.array is not None or self._minuend is not None:
            return []
        copies, self._copies = self._copies, []
        return copies

    def subtract_from(self, total: Any) -> bool:
        """Become ``total`` without this sum; return whether anything is left, as far as that is known."""
        total, may_read = local_tensor(total), self._may_read()
        self._minuend = total if may_read else self._copy(total)
        return self.resolve() if may_read else True

    def resolve(self) -> bool:
        """Read the terms that were copied; return whether the sum holds anything."""
        copies, self._copies = self._copies, []
        for term in copies:
            self._add(term)
        total, self._minuend = self._minuend, None
        if total is None:
            return self.array is not None
        array = self._read(total)
        self.dtype = str(total.dtype)
        has_nan = array.dtype.kind in "fcV"  # V: bfloat16
        if self.array is not None and np.array_equal(array, self.array, equal_nan=has_nan):
            return False
        self.array = np.array(array) if self.array is None else np.asarray(array - self.array)
        return True

    def record(self, measurer: Measurer, name: str, sink: ArraySink | None) -> Any:
        """Return the record of the sum, or None where nothing is left of it; tensors may be read now."""
        if not self.resolve() or self.array is None:
            return None
        return measurer.array(self.array, self.dtype, name, sink)

    def _add(self, tensor: Any) -> None:
        array = self._read(tensor)
        self.dtype = str(tensor.dtype)
        self.array = np.array(array) if self.array is None else np.asarray(self.array + array)
