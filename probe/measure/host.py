# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Measuring on the host, at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from probe.measure.array_filter import ArrayFilter
from probe.measure.measurer import ArraySink, Role
from probe.measure.records import TensorRecord, finite_record, tensor_record
from probe.measure.statistic_table import SelectedStatistics
from probe.measure.statistics import Numbers, crc32, finite_statistics, statistics
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
