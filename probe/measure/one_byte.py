# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The dtypes of one byte that numpy lacks: float8, HiFloat8 and Int4. MindSpore hands out their bytes alone."""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

from probe.measure.dtype_name import dtype_name

HIFLOAT8 = np.dtype([("hifloat8", np.uint8)])  # the bytes of HiFloat8, which ml_dtypes lacks too
_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
#: dtypes that numpy does not compute with: they become float32, exactly
NARROW = (np.dtype(ml_dtypes.bfloat16), _E4M3, _E5M2, HIFLOAT8)
#: the dtype in a record -> that of its elements in numpy. A byte of Int4 holds two numbers; MindSpore takes it for int8
ONE_BYTE: dict[str, np.dtype[Any]] = {
    "Float8E4M3FN": _E4M3,
    "Float8E5M2": _E5M2,
    "HiFloat8": HIFLOAT8,
    "Int4": np.dtype(np.int8),
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype that tensors have in numpy, by its name in a record."""
    return (
        ONE_BYTE[name]
        if name in ONE_BYTE
        else np.dtype(getattr(ml_dtypes, name.lower(), name.lower()))
    )


def one_byte_dtypes() -> frozenset[Any]:
    """Return the dtypes of one byte that this MindSpore has."""
    from mindspore.common.dtype import number_type

    return frozenset(dtype for dtype in number_type if dtype_name(dtype) in ONE_BYTE)


class ByteViews:
    """Views of tensors of such dtypes by operations of MindSpore, whose kernels take no such tensor."""

    def __init__(self) -> None:
        import mindspore
        from mindspore.ops import operations
        from mindspore.ops.auto_generate import gen_ops_prim

        self._ms = mindspore
        self.dtypes = one_byte_dtypes()
        self._view: Any = getattr(gen_ops_prim, "ViewDtype", None)
        self._cast = operations.Cast()
        self._gather = operations.Gather()
        self._table = functools.lru_cache(None)(lambda name: mindspore.Tensor(table(name)))

    def integers(self, tensor: Any) -> Any:
        """Return the bytes as Int8; raise TypeError where this MindSpore has no such view."""
        return self._view()(tensor, self._ms.int8)

    def values(self, tensor: Any) -> Any:
        """Return the values: of floats in float32, by a table of 256, and of Int4 the bytes."""
        name = dtype_name(tensor._dtype)
        integers = self.integers(tensor)
        if name == "Int4":
            return integers
        return self._gather(
            self._table(name), self._cast(self._view()(integers, self._ms.uint8), self._ms.int32), 0
        )


def single(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array of half floats, or of floats of one byte, as float32.

    >>> single(np.array([8, 9, 111, 128], np.uint8).view(HIFLOAT8)).tolist()
    [1.0, 1.125, inf, nan]
    """
    return (
        table("HiFloat8")[array.view(np.uint8)]
        if array.dtype == HIFLOAT8
        else array.astype(np.float32)
    )


@functools.lru_cache(None)
def table(name: str) -> np.ndarray[Any, Any]:
    """Return the float32 value of each of the 256 bytes of a dtype of floats.

    arXiv 2409.16626 defines HiFloat8: sign, then bits that tell the width of the exponent, exponent, mantissa. Of the
    exponent, which has a sign, the highest bit is always one and not stored. The last of its numbers is Inf.
    """
    if name != "HiFloat8":
        return np.arange(256, dtype=np.uint8).view(ONE_BYTE[name]).astype(np.float32)
    half = [0.0, *(2.0**power for power in range(-22, -15))]
    for width, bits in (0, 3), (1, 3), (2, 3), (3, 2), (4, 1):
        highest = 1 << width >> 1
        for stored in range(1 << width):
            power = stored + highest if stored < highest or not width else -stored
            half += [2.0**power * (1 + mantissa / (1 << bits)) for mantissa in range(1 << bits)]
    half[half.index(max(half))] = math.inf
    return np.array([*half, math.nan, *(-value for value in half[1:])], np.float32)
