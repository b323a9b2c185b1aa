# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Tensors as numpy arrays that lose nothing, also where numpy has no name for the dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

#: MindSpore hands bfloat16 to numpy as a two-byte dtype of its own, of this kind
_FOREIGN_KIND = "V"


def array_of(tensor: Any) -> Array:
    """Return the values of a tensor, bfloat16 as ``ml_dtypes.bfloat16``.

    The array shares the tensor's memory where it can: never write into it, and copy what must outlive the call.
    """
    array: Array = tensor.asnumpy()
    if array.dtype.kind == _FOREIGN_KIND and array.dtype.itemsize == 2:
        return array.view(ml_dtypes.bfloat16)
    return array


def storable(array: Array) -> Array:
    """Return what numpy.save can write: bfloat16 becomes float32 (exact), all else stays as it is."""
    return array.astype(np.float32) if array.dtype == ml_dtypes.bfloat16 else array


class Sum:
    """A sum of gradients in their own dtype, as the framework would add them.

    Attributes:
        array: the sum so far, or None.
        dtype: the name of its dtype in MindSpore.
    """

    __slots__ = ("array", "dtype")

    def __init__(self) -> None:
        self.array: Array | None = None
        self.dtype = ""

    def add(self, tensor: Any) -> None:
        """Add one contribution; its memory may be reused afterwards."""
        array = array_of(tensor)
        self.dtype = str(tensor.dtype)
        self.array = np.array(array) if self.array is None else np.asarray(self.array + array)

    def left_of(self, total: Any) -> Array | None:
        """Return ``total`` without this sum, or None where nothing is left."""
        array = array_of(total)
        self.dtype = str(total.dtype)
        if self.array is None:
            return array
        if np.array_equal(array, self.array, equal_nan=array.dtype.kind in "fc"):
            return None
        return np.asarray(array - self.array)
