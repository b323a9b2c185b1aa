# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Numbers taken on the host at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from probe.measure.measurer import Save, Trouble
from probe.measure.records import TensorRecord, finite, record
from probe.measure.statistics import Numbers, crc32, statistics
from probe.measure.statistics import finite as four_of
from probe.measure.tensor_reader import Array, Sum, TensorReader, to_storable

if TYPE_CHECKING:
    from probe.measure.array_filter import ArrayFilter
    from probe.measure.statistic_table import SelectedStatistics

#: records of tensors of at most so many bytes are remembered by their content: the same bytes have the same numbers
_SMALL = 2048
_REMEMBERED = 4096
_FLOAT = np.dtype(np.float32)


class HostMeasurer:
    """Reads a tensor when it is given.

    Args:
        md5: whether a tensor's record carries the CRC-32 of its bytes.
        chosen: takes other statistics than the four, or None.
        exact: whether bfloat16 is stored as it is.
        kept: decides which arrays are written, and how much of them; None for all.
    """

    at_once = True
    full = False

    def __init__(
        self, md5: bool, chosen: SelectedStatistics | None = None, exact: bool = False, kept: ArrayFilter | None = None
    ) -> None:
        import mindspore

        self._md5 = md5
        self.chosen, self._exact, self._kept = chosen, exact, kept
        self._shortest = not md5 and chosen is None
        self._statistics: Callable[[Array], Numbers] = statistics if chosen is None else chosen
        self._float = mindspore.float32
        self._read = TensorReader()
        self._memo: dict[tuple[bytes, Any, tuple[int, ...]], TensorRecord] = {}
        self._dtype_names: dict[Any, str] = {}

    def tensor(self, tensor: Any, name: str, save: Save | None) -> TensorRecord:
        """Return the record of one tensor."""
        dtype = tensor._dtype
        if save is None:
            if tensor._nbytes <= _SMALL:
                content = self._read.content(tensor)
                if content is not None:
                    key = (content, dtype, tensor._shape)
                    return self._memo.get(key) or self._remember(key, tensor)
            elif dtype is self._float and self._shortest:  # the same as below, by the shortest way
                flat = self._read.flat(tensor, _FLOAT)
                four = None if flat is None else four_of(flat)
                if four is not None:
                    return finite("Float32", tensor._shape, *four)
        return self.array(self._read(tensor), self._name(dtype), name, save)

    def _remember(self, key: tuple[bytes, Any, tuple[int, ...]], tensor: Any) -> TensorRecord:
        if len(self._memo) >= _REMEMBERED:
            self._memo.clear()
        record = self._memo[key] = self.array(self._read(tensor), self._name(tensor._dtype), "", None)
        return record

    def sum(self) -> Sum:
        """Return a new sum of gradients."""
        return Sum(self._read)

    def total(self, total: Sum, name: str, save: Save | None) -> TensorRecord:
        """Return the record of such a sum."""
        assert total.array is not None
        return self.array(total.array, total.dtype, name, save)

    def collect(self, trouble: Trouble) -> None:
        """Nothing waits."""

    def forget(self) -> None:
        """Let go of what was remembered; the step is over."""
        self._memo.clear()

    def array(self, array: Array, dtype: str, name: str, save: Save | None) -> TensorRecord:
        """Return the record of the values of a tensor of this dtype."""
        numbers = self._statistics(array)
        if not self._md5 and save is None:
            return record(dtype, array.shape, numbers)
        if save is not None and self._kept is not None and not self._kept.wants(array):
            save = None
        array = array if self._exact else to_storable(array)
        further = {"md5": crc32(array)} if self._md5 else {}
        saved = save(name, array if self._kept is None else self._kept.part(array)) if save is not None else ""
        if saved:
            further["data_name"] = saved
        return record(dtype, array.shape, numbers, further)

    def _name(self, dtype: Any) -> str:
        name = self._dtype_names.get(dtype)
        if name is None:
            name = self._dtype_names[dtype] = str(dtype)
        return name
