# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measuring on the host, at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np

from probe.config.settings import Settings
from probe.measure.measurer import ArraySink, Role, TensorRecord, finite_record, tensor_record
from probe.measure.statistics import FOUR, STATISTICS, Numbers, SelectedStatistics, crc32, finite_statistics, statistics
from probe.measure.tensor_reader import SINGLE, Array, TensorReader, to_storable

#: cache of records keyed by tensor bytes: tensors of at most this many bytes, and this many records
_SMALL = 2048
_REMEMBERED = 4096


class HostMeasurer:
    """Reads a tensor when it is given.

    Args:
        md5: whether a tensor's record carries the CRC-32 of its bytes.
        chosen: takes other statistics than the four, or None.
        exact: whether bfloat16 is stored as it is.
        kept: decides which arrays are written, and how much of them; None for all.
    """

    is_immediate = True

    def __init__(
        self, md5: bool, chosen: SelectedStatistics | None = None, exact: bool = False, kept: ArrayFilter | None = None
    ) -> None:
        import mindspore

        self._md5 = md5
        self.chosen, self._exact, self._kept = chosen, exact, kept
        self._shortest = not md5 and chosen is None
        self._statistics: Callable[[Array], Numbers] = statistics if chosen is None else chosen
        self._float = mindspore.float32
        self.read = TensorReader()
        self._memo: dict[tuple[bytes, Any, tuple[int, ...]], TensorRecord] = {}
        self._name: Callable[[Any], str] = functools.lru_cache(maxsize=None)(str)

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> TensorRecord:
        """Return the record of one tensor."""
        dtype = tensor._dtype
        if sink is None:
            if tensor._nbytes <= _SMALL:
                content = self.read.content(tensor)
                if content is not None:
                    key = (content, dtype, tensor._shape)
                    return self._memo.get(key) or self._remember(key, tensor)
            elif dtype is self._float and self._shortest:  # the same as below, by the shortest way
                flat = self.read.flat(tensor, SINGLE)
                four = None if flat is None else finite_statistics(flat)
                if four is not None:
                    return finite_record("Float32", tensor._shape, *four)
        return self.array(self.read(tensor), self._name(dtype), name, sink)

    def _remember(self, key: tuple[bytes, Any, tuple[int, ...]], tensor: Any) -> TensorRecord:
        if len(self._memo) >= _REMEMBERED:
            self._memo.clear()
        record = self._memo[key] = self.array(self.read(tensor), self._name(tensor._dtype), "", None)
        return record

    def forget(self) -> None:
        """Release remembered records; the step is over."""
        self._memo.clear()

    def array(self, array: Array, dtype: str, name: str, sink: ArraySink | None) -> TensorRecord:
        """Return the record of the values of a tensor of this dtype."""
        numbers = self._statistics(array)
        if not self._md5 and sink is None:
            return tensor_record(dtype, array.shape, numbers)
        array = array if self._exact else to_storable(array)
        texts = {"md5": crc32(array)} if self._md5 else {}
        if sink is not None and (self._kept is None or self._kept.wants(array)):
            saved = sink(name, array if self._kept is None else self._kept.part(array))
            if saved:
                texts["data_name"] = saved
        return tensor_record(dtype, array.shape, {**numbers, **texts})


_SIGNS = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}


class ArrayFilter:
    """Decides by the settings ``when``, ``slice``, ``sample_mode`` and ``sample_num``."""

    def __init__(self, settings: Settings) -> None:
        self._when, self._slices = settings.when, settings.slice
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
