# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Numbers taken where the tensor is: MindSpore reduces it there, and the numbers of many are fetched together."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from probe.measure.deferred import DeferredMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import Save, Trouble
from probe.measure.records import PendingRecord, record
from probe.measure.statistics import Number, Numbers

#: what a tensor of zeros is divided by instead of its largest magnitude
_TINY = 1e-37


class DeviceMeasurer(DeferredMeasurer):
    """Adds reductions to MindSpore's pipeline and waits for nothing until ``collect``.

    Sums are made of values divided by the largest, so that finite data never overflow; they are in float32, so Mean and
    Norm agree with the host's to about six digits. What is saved, or has no float32 (complex, float64), is copied.

    Args:
        host: measures what is copied.
        reduces: whether numbers are all that is wanted of a tensor that is not saved (no checksum).
    """

    def __init__(self, host: HostMeasurer, reduces: bool) -> None:
        import mindspore
        from mindspore.ops import operations

        super().__init__(host)
        self._chosen = host.chosen
        self._ms = mindspore
        names = "float16 bfloat16 float32" if reduces else ""
        self._floating = frozenset(getattr(mindspore, name) for name in names.split())
        names = "bool_ int8 int16 int32 int64 uint8" if reduces else ""
        self._whole = frozenset(getattr(mindspore, name) for name in names.split())
        # own instances of the Primitives: the listed functions may be patched just now
        self._cast, self._stack = operations.Cast(), operations.Stack()
        self._max, self._min = operations.ReduceMax(), operations.ReduceMin()
        self._add_up, self._mean = operations.ReduceSum(), operations.ReduceMean()
        self._nan, self._inf = operations.IsNan(), operations.IsInf()
        self._divide, self._larger, self._square = operations.RealDiv(), operations.Maximum(), operations.Square()
        self._abs = operations.Abs()
        self._where = {name: getattr(operations, name)() for name in ("IsNan", "Equal", "Less", "Greater")}
        self._tiny = mindspore.Tensor(_TINY, mindspore.float32)
        self._floats: list[Any] = []
        self._integers: list[Any] = []
        self._tasks: list[tuple[PendingRecord, str, tuple[int, ...], str]] = []

    def tensor(self, tensor: Any, name: str, save: Save | None) -> Any:
        """Return the record of one tensor, complete after ``collect``."""
        dtype, empty = self._surely(_kind, tensor)
        if save is not None or empty or not (dtype in self._floating or dtype in self._whole):
            return super().tensor(tensor, name, save)
        kind = "float" if dtype in self._floating else "bool" if dtype == self._ms.bool_ else "int"
        floats, integers = self._surely(functools.partial(self._own.run, self._reduce, kind), tensor)
        self._floats += floats
        self._integers += integers
        later = PendingRecord()
        self._tasks.append((later, str(dtype), tensor._shape, kind))
        self.full = self.full or len(self._tasks) >= self.most
        return later

    def collect(self, trouble: Trouble) -> None:
        """Fetch what waits, all of a kind at once, and measure the copies."""
        tasks, floats, integers = self._tasks, self._floats, self._integers
        self._tasks, self._floats, self._integers = [], [], []
        super().collect(trouble)
        if not tasks:
            return
        try:
            singles, wholes = self._fetch(floats), self._fetch(integers)
            chosen = self._chosen
            for later, dtype, shape, kind in tasks:
                numbers = _numbers(kind, singles, wholes)
                later.record = record(dtype, shape, numbers if chosen is None else self._choice(numbers, shape, wholes))
        except Exception as error:
            trouble("fetching numbers from the device", error)

    def _fetch(self, scalars: Sequence[Any]) -> Iterator[Any]:
        return iter(self._own.run(self._stack, tuple(scalars)).asnumpy().tolist() if scalars else ())

    def _choice(self, four: Numbers, shape: tuple[int, ...], counts: Iterator[int]) -> Numbers:
        """Return the chosen statistics of one tensor, from the four and from what was counted on the device."""
        assert self._chosen is not None
        numbers: Numbers = {}
        for entry in self._chosen.table:
            counted = entry.device is not None
            numbers[entry.key] = next(counts) if counted else four.get(entry.key, math.prod(shape))
        return numbers

    def _reduce(self, kind: str, tensor: Any) -> tuple[list[Any], list[Any]]:
        """Return what ``_numbers`` takes out again, single precision and whole numbers, all still on the device."""
        floats, integers = self._four(kind, tensor)
        if self._chosen is not None:
            values = self._cast(tensor, self._ms.float32)
            for entry in self._chosen.table:
                if entry.device is not None:
                    name, other = entry.device
                    where = self._where[name](values) if other is None else self._where[name](values, other)
                    found = self._cast(where, self._ms.float32)
                    integers.append(self._cast(self._add_up(found), self._ms.int64))
        return floats, integers

    def _four(self, kind: str, tensor: Any) -> tuple[list[Any], list[Any]]:
        floats: list[Any] = []
        integers: list[Any] = []
        single, double = self._ms.float32, self._ms.int64
        values = self._cast(tensor, single)
        if kind == "float":
            largest, smallest = self._max(values), self._min(values)
            strange = self._nan(values), self._inf(values)
            integers += [self._cast(self._add_up(self._cast(found, single)), double) for found in strange]
            floats += [largest, smallest]
        else:
            whole = self._cast(tensor, double)
            integers += [self._max(whole), self._min(whole)]
            if kind == "bool":
                return floats, integers
            largest, smallest = self._max(values), self._min(values)
        scale = self._larger(self._larger(self._abs(largest), self._abs(smallest)), self._tiny)
        unit = self._divide(values, scale)
        floats += [scale, self._mean(unit), self._add_up(self._square(unit))]
        return floats, integers


def _kind(tensor: Any) -> tuple[Any, bool]:
    return tensor._dtype, not tensor._nbytes


def _numbers(kind: str, floats: Iterator[float], integers: Iterator[int]) -> Numbers:
    """Return the numbers of one tensor from what was fetched, in the order of ``_reduce``."""
    first, second = itertools.islice(integers, 2)
    if kind == "bool":
        return {"Max": bool(first), "Min": bool(second), "Mean": None, "Norm": None}
    largest: Number = first
    smallest: Number = second
    if kind == "float":
        largest, smallest = itertools.islice(floats, 2)
    scale, mean, square = itertools.islice(floats, 3)
    numbers: Numbers = {"Max": largest, "Min": smallest, "Mean": mean * scale, "Norm": math.sqrt(square) * scale}
    if kind == "float" and (first or second):
        numbers = _nonfinite(int(first), int(second), largest or 0.0, smallest or 0.0)
    return numbers


def _nonfinite(nans: int, infinities: int, largest: float, smallest: float) -> Numbers:
    numbers: Numbers = {"Max": largest, "Min": smallest, "Mean": largest + smallest, "Norm": math.inf}
    if nans:
        numbers = dict.fromkeys(("Max", "Min", "Mean", "Norm"), math.nan)
        numbers["nan_count"] = nans
    elif math.isfinite(largest):
        numbers["Mean"] = -math.inf
    elif math.isfinite(smallest):
        numbers["Mean"] = math.inf
    if infinities:
        numbers["inf_count"] = infinities
    return numbers
