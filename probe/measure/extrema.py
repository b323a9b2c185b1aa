# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The extrema of tensors, for task "nan_check": the cheapest numbers that show NaN and Inf."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from probe.measure.host import HostMeasurer
from probe.measure.measurer import ArraySink, Role, TensorRecord, tensor_record, with_keys
from probe.measure.statistics import as_real
from probe.measure.tensor_reader import SINGLE, Array, TensorReader

_maximum, _minimum = np.maximum.reduce, np.minimum.reduce

Extrema = tuple[Any, Any]


class Severity(enum.IntEnum):
    """The kinds of values, from harmless to worst."""

    FINITE = 0
    #: attention masks contain -inf on purpose
    NEGATIVE_INF = 1
    INF = 2
    NAN = 3


@dataclass(eq=False, repr=False)
class TensorExtrema:
    """A tensor's maximum and minimum; its values until ``release()``."""

    array: Array | None  # the values; None for those that the tensor has
    tensor: Any  # the tensor, held because the array may be its memory
    read: Callable[[Any], Array]  # tensor -> array
    extrema: Extrema | None  # the largest and the smallest element, or None where they are not measured yet
    dtype: Any
    shape: tuple[int, ...]
    name: str  # the file name of its array
    sink: ArraySink | None
    record: TensorRecord | None = None  # the record with all numbers, once ``complete`` has taken them
    keys: tuple[str, ...] = ()  # its further keys, as JSON

    @property
    def severity(self) -> Severity:
        """The worst kind of value in the tensor."""
        if self.extrema is None:
            array = self._values()
            self.extrema = None if array is None else _extrema(array)
        return Severity.FINITE if self.extrema is None else severity(self.extrema)

    @property
    def is_ones(self) -> bool:
        """Whether the tensor is one number, or every element is 1: such is the gradient that a backward starts with."""
        return self.severity is Severity.FINITE and (not self.shape or self.extrema == (1.0, 1.0))

    def _values(self) -> Array | None:
        return self.array if self.array is not None or self.tensor is None else self.read(self.tensor)

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``TensorRecord``."""
        largest, smallest = self.extrema or (None, None)
        numbers = {"Max": largest, "Min": smallest, "Mean": None, "Norm": None}
        record = self.record or tensor_record(str(self.dtype), self.shape, numbers)
        return with_keys(record, self.keys).text(pad)

    def with_key(self, key: str) -> TensorExtrema:
        """Add a key; see ``TensorRecord``."""
        self.keys += (key,)
        return self

    def release(self) -> None:
        """Release the values and keep the extrema."""
        self.array = self.tensor = None

    def complete(self, host: HostMeasurer) -> bool:
        """Take all numbers and write the array; return False where the values were modified meanwhile."""
        array = self._values()
        if array is not None:
            if self.extrema is not None and repr(_extrema(array)) != repr(self.extrema):
                self.release()
                return False
            array = array.reshape(self.shape)
            self.record = host.array(array, str(self.dtype), self.name, self.sink)
            self.release()
        return True


def severity(extrema: Extrema) -> Severity:
    """Return the worst kind of value between these two; None stands for a tensor without elements."""
    largest, smallest = extrema
    if largest is None or (largest - largest == 0 and smallest - smallest == 0):
        return Severity.FINITE
    if np.isnan(largest) or np.isnan(smallest):
        return Severity.NAN
    return Severity.NEGATIVE_INF if largest < np.inf else Severity.INF


def _extrema(array: Array) -> Extrema:
    kind = array.dtype.kind
    if array.size == 0 or kind == "b":
        return None, None
    flat = as_real(array).ravel(order="K")
    if kind == "c" and not np.isfinite(flat).all():  # or only the absolute value is Inf
        flat = array.ravel().view(array.real.dtype)
    return _maximum(flat).item(), _minimum(flat).item()


class ExtremaMeasurer:
    """Measures the extrema of outputs at once. Inputs are kept, and measured only if an output has NaN/Inf."""

    is_immediate = True

    def __init__(self, host: HostMeasurer) -> None:
        import mindspore

        self.host = host  # takes all numbers of the tensors that are written
        self.saw_nonfinite = False  # whether any NaN or Inf was seen
        self.read = TensorReader()
        self._float = mindspore.float32

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorExtrema:
        """Return the extrema of a tensor."""
        dtype, read = tensor._dtype, self.read
        if role is not Role.OUTPUT:
            array = read(tensor).copy() if role is Role.CHANGEABLE_INPUT else None
            return TensorExtrema(array, tensor, read, None, dtype, tensor._shape, name, sink)
        flat = read.flat(tensor, SINGLE) if dtype is self._float else None
        array = read(tensor) if flat is None else flat
        extrema = _extrema(array) if flat is None else (_maximum(flat).item(), _minimum(flat).item())
        self.saw_nonfinite = self.saw_nonfinite or severity(extrema) is not Severity.FINITE
        return TensorExtrema(array, tensor, read, extrema, dtype, tensor._shape, name, sink)

    def array(self, array: Array, dtype: str, name: str, sink: ArraySink | None) -> TensorExtrema:
        """Return the extrema of an array; see ``Measurer``."""
        extrema = _extrema(array)
        self.saw_nonfinite = self.saw_nonfinite or severity(extrema) is not Severity.FINITE
        return TensorExtrema(array, None, self.read, extrema, dtype, array.shape, name, sink)

    def forget(self) -> None:
        """Release remembered records; the step is over."""
        self.host.forget()
