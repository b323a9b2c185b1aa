# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measuring on the host, at once: all numbers of a tensor, or the extrema alone."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np

from probe.config.settings import Settings
from probe.measure.dtype_name import dtype_name
from probe.measure.measurer import (
    ArraySink,
    FiniteRecord,
    PendingRecord,
    Role,
    TensorRecord,
    tensor_record,
    with_keys,
)
from probe.measure.one_byte import one_byte_dtypes
from probe.measure.statistics import (
    FOUR,
    STATISTICS,
    SelectedStatistics,
    as_real,
    crc32,
    finite_statistics,
    statistics,
)
from probe.measure.tensor_reader import Array, TensorReader, to_storable

#: cache of records keyed by tensor bytes: tensors of at most this many bytes, and this many records
_SMALL = 2048
_REMEMBERED = 4096
_SIGNS = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}
_maximum = np.maximum.reduce
_minimum = np.minimum.reduce
Extrema = tuple[Any, Any]


class HostMeasurer:
    """Reads a tensor when it is given.

    If ``md5``, the record of a tensor has the CRC-32 of its bytes; if ``exact``, bfloat16 is stored as it is.
    ``chosen`` takes other statistics than the four; ``kept`` decides which arrays are written, and how much of them.
    """

    is_immediate = True

    def __init__(
        self,
        md5: bool,
        chosen: SelectedStatistics | None = None,
        exact: bool = False,
        kept: ArrayFilter | None = None,
    ) -> None:
        import mindspore

        self._md5 = md5
        self.read = TensorReader()
        self.chosen = chosen
        self._exact = exact
        self._kept = kept
        self._shortest = not md5 and chosen is None and self.read.is_direct
        self._float = mindspore.float32
        self._memo: dict[Any, dict[tuple[bytes, tuple[int, ...]], TensorRecord]] = {}  # by dtype
        self._written: dict[Any, TensorRecord] = {}  # by what all equal arrays have in common
        self.forget()
        self._name: Callable[[Any], str] = functools.lru_cache(maxsize=None)(dtype_name)

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorRecord:
        """Return the record of one tensor."""
        dtype = tensor._dtype
        size = tensor._nbytes
        if sink is not None:
            flat = (
                self.read.single(tensor, size)
                if size and dtype is self._float and self._shortest
                else None
            )
            if flat is not None and self._kept is None:
                return self._saved(flat, tensor._shape, name, sink)
        elif size <= _SMALL:
            known = self._memo.get(dtype)
            content = None if known is None else self.read.content(tensor, size)
            if known is not None and content is not None:
                key = content, tensor._shape
                return known.get(key) or self._remember(known, key, tensor)
        elif dtype is self._float and self._shortest:  # the same as below, by the shortest way
            flat = self.read.single(tensor, size)
            four = None if flat is None else finite_statistics(flat)
            if four is not None:
                return FiniteRecord("Float32", tensor._shape, four)
        return self.array(self.read(tensor), self._name(dtype), name, sink)

    def _saved(
        self, flat: Array, shape: tuple[int, ...], name: str, sink: ArraySink
    ) -> TensorRecord:
        saved, file = sink(name, flat.reshape(shape))  # first: equal arrays are measured once
        record = self._written.get(file) or tensor_record("Float32", shape, statistics(flat))
        if saved:
            self._written[file] = record
        return record.with_key(f'"data_name": "{saved}"') if saved else record

    def _remember(self, known: dict[Any, TensorRecord], key: Any, tensor: Any) -> TensorRecord:
        if len(known) >= _REMEMBERED:
            known.clear()
        record = known[key] = self.array(self.read(tensor), self._name(tensor._dtype), "", None)
        return record

    def forget(self) -> None:
        """Release remembered records; the step is over."""
        self._memo = {dtype: {} for dtype in self.read.direct_dtypes}
        self._written = {}

    def array(self, array: Array, dtype: str, name: str, sink: ArraySink | None) -> TensorRecord:
        """Return the record of the values of a tensor of this dtype."""
        stored = to_storable(array, self._exact) if self._md5 or sink is not None else array
        # the checksum first: in this order the training slows down less, by 5 % of what md5 adds
        texts = {"md5": crc32(stored)} if self._md5 else {}
        numbers: dict[str, Any] = (
            statistics(array) if self.chosen is None else self.chosen(array, dtype)
        )
        if not self._md5 and sink is None:
            return tensor_record(dtype, array.shape, numbers)
        array = stored
        if sink is not None and (self._kept is None or self._kept.wants(array)):
            saved, _ = sink(name, array if self._kept is None else self._kept.part(array))
            if saved:
                texts["data_name"] = saved
        return tensor_record(dtype, array.shape, {**numbers, **texts})


class ArrayFilter:
    """Decides by the settings ``when``, ``slice``, ``sample_mode`` and ``sample_num``."""

    def __init__(self, settings: Settings) -> None:
        self._when = settings.when
        self._slices = settings.slice
        stat = settings.when.stat if settings.when else ""
        self._statistics = SelectedStatistics([stat]) if stat else statistics
        self._sample = settings.sample_num if settings.sample_mode else -1

    def wants(self, array: Array) -> bool:
        """Return whether an array is written."""
        if self._when is None:
            return True
        numbers = self._statistics(array)
        if not self._when.stat:
            return len(numbers) > len(FOUR)
        number = numbers[STATISTICS[self._when.stat].key]
        return number is not None and bool(_SIGNS[self._when.sign](number, self._when.number))

    def part(self, array: Array) -> Array:
        """Return the part of an array that is written; samples stand in one row."""
        for one in self._slices:
            if one.dim < array.ndim and one.size in (None, array.shape[one.dim]):
                array = array[(slice(None),) * one.dim + (slice(one.begin, one.end),)]
        if self._sample < 0 or array.size <= self._sample:
            return array
        places = np.linspace(0, array.size - 1, self._sample).round().astype(np.int64)
        return np.asarray(array.reshape(-1)[places])


class Severity(enum.IntEnum):
    """The kinds of values, from harmless to worst."""

    FINITE = 0
    NEGATIVE_INF = 1  # attention masks contain -inf on purpose
    INF = 2
    NAN = 3


@dataclass(eq=False, repr=False)
class TensorExtrema(PendingRecord):
    """A tensor's maximum and minimum; its values until ``release()``."""

    array: Array | None  # the values; None for those that the tensor has
    tensor: Any  # the tensor, held because the array may be its memory
    read: Callable[[Any], Array]  # tensor -> array
    extrema: (
        Extrema | None
    )  # the largest and the smallest element, or None where they are not measured yet
    dtype: Any
    shape: tuple[int, ...]
    name: str  # the file name of its array
    sink: ArraySink | None
    record: TensorRecord | None = (
        None  # the record with all numbers, once ``complete`` has taken them
    )
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
        return (
            self.array if self.array is not None or self.tensor is None else self.read(self.tensor)
        )

    def text(self, pad: str) -> str:
        """Return the text of the record; see ``TensorRecord``."""
        largest, smallest = self.extrema or (None, None)
        numbers = {"Max": largest, "Min": smallest, "Mean": None, "Norm": None}
        record = self.record or tensor_record(dtype_name(self.dtype), self.shape, numbers)
        return with_keys(record, self.keys).text(pad)

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
            self.record = host.array(array, dtype_name(self.dtype), self.name, self.sink)
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
        self._one_byte = one_byte_dtypes()  # their bytes may be out of reach

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorExtrema:
        """Return the extrema of a tensor."""
        dtype = tensor._dtype
        read = self.read
        if role is not Role.OUTPUT:
            array = (
                read(tensor).copy()
                if role is Role.CHANGEABLE_INPUT or dtype in self._one_byte
                else None
            )
            return TensorExtrema(array, tensor, read, None, dtype, tensor._shape, name, sink)
        size = tensor._nbytes if dtype is self._float and read.is_direct else 0
        flat = read.single(tensor, size) if size else None
        array = read(tensor) if flat is None else flat
        extrema = (
            _extrema(array) if flat is None else (_maximum(flat).item(), _minimum(flat).item())
        )
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
