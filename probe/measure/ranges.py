# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The magnitudes in a tensor, and those that a narrower dtype would lose: here by numpy, or on the tensor's device."""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

from probe.measure.one_byte import HIFLOAT8, numpy_dtype
from probe.measure.tensor_reader import Array
from probe.naming import NARROWER

#: the dtypes to which numbers are rounded: to the nearest, and to the even one of two
FORMATS: dict[str, Any] = {name: ml_dtypes.finfo(numpy_dtype(name)) for name in NARROWER}
_NUMPY: dict[str, Any] = {
    "Abs": np.abs,
    "Sub": np.subtract,
    "Div": np.divide,
    "Square": np.square,
    "LogicalNot": np.logical_not,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "MaskedFill": lambda values, mask, other: np.where(mask, other, values),
    "Max": lambda values: float(values.max(initial=0.0)),
    "Min": lambda values: float(values.min(initial=math.inf)),
    "ClampScalar": lambda value, *ends: value or 1.0,
}


def _beyond(kind: Any) -> float:
    """Return the smallest float32 that becomes Inf in a dtype of ``FORMATS``, or NaN where it has no Inf."""
    tie = np.float32(float(kind.max) + math.ldexp(0.25, math.frexp(kind.max)[1] - kind.nmant))
    return float(
        tie
        if np.isinf(np.float32(np.inf).astype(kind.dtype))
        else np.nextafter(tie, np.float32(np.inf))
    )


def _ends(dtype: np.dtype[Any]) -> tuple[float, ...]:
    """Return the greatest number of a dtype, and the smallest where it is below zero; nothing for other dtypes."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return (info.max, info.min) if info.min else (info.max,)
    if dtype.kind not in "fV":
        return ()
    largest = 32768.0 if dtype == HIFLOAT8 else float(ml_dtypes.finfo(dtype).max)
    return largest, -largest


class HostOperations:
    """The methods of ``Reductions`` that a range needs, by numpy and in float64."""

    run = staticmethod(lambda name, *operands: _NUMPY[name](*operands))
    total = staticmethod(np.sum)
    values = staticmethod(lambda values, kind: values.astype(np.float64))

    def count(self, values: Array, comparison: str, *operand: float) -> int:
        """Return how many elements a comparison finds: with the operand, or with themselves."""
        return int(np.count_nonzero(_NUMPY[comparison](values, *(operand or (values,)))))

    def rounded(self, values: Array, kind: Any) -> Array:
        """Return magnitudes in another dtype, as float64."""
        return np.minimum(values, float(kind.max)).astype(kind.dtype).astype(np.float64)


class Range:
    """The elements of a tensor, and their magnitudes |x|. Its numbers are where the tensor is."""

    def __init__(self, operations: Any, values: Any, dtype: str) -> None:
        self._operations = operations
        self._run = operations.run
        self._values = values
        self._dtype = dtype

    def _without(self, values: Any, comparison: str, operand: float, other: float) -> Any:
        """Return the elements, and another number for those that a comparison finds."""
        return self._run("MaskedFill", values, self._run(comparison, values, operand), other)

    @functools.cached_property
    def _finite(self) -> Any:
        """The magnitudes, with 0 for NaN/Inf."""
        sizes = self._run("Abs", self._operations.values(self._values, "int"))
        return self._run(
            "MaskedFill", sizes, self._run("LogicalNot", self._run("Less", sizes, math.inf)), 0.0
        )

    @functools.cached_property
    def _above(self) -> Any:
        """The finite ones above zero, with Inf for the rest."""
        return self._without(self._finite, "LessEqual", 0.0, math.inf)

    def count(self, comparison: str, *operand: float) -> list[Any]:
        """Return how many elements a comparison finds; see ``Reductions``."""
        return [self._operations.count(self._values, comparison, *operand)]

    def ends(self) -> list[Any]:
        """Return the greatest finite magnitude, 0 where all are zero, and the smallest above zero, or Inf."""
        return [self._run("Max", self._finite), self._run("Min", self._above)]

    def saturated(self) -> list[Any]:
        """Return how many elements are each end of the dtype. On a device they are compared as float32."""
        return [
            self._operations.count(self._values, "Equal", end)
            for end in _ends(numpy_dtype(self._dtype))
        ]

    def underflow(self, kind: Any) -> list[Any]:
        """Return how many elements become zero in another dtype, and are not."""
        return [
            self._operations.count(self._above, "LessEqual", float(kind.smallest_subnormal) / 2)
        ]

    def overflow(self, kind: Any) -> list[Any]:
        """Return how many finite elements become Inf, or NaN, in another dtype."""
        return [self._operations.count(self._finite, "GreaterEqual", _beyond(kind))]

    def rounding(self, kind: Any) -> list[Any]:
        """Return the squares of the norms of the change by a rounding, and of the elements that stay finite in it."""
        kept = self._without(self._finite, "GreaterEqual", _beyond(kind), 0.0)
        scale = self._run("ClampScalar", self._run("Max", kept), 1e-37, 3.4e38)
        parts = self._run("Sub", self._operations.rounded(kept, kind), kept), kept
        return [
            self._operations.total(self._run("Square", self._run("Div", part, scale)))
            for part in parts
        ]
