# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Measuring on the device: MindSpore reduces each tensor, and the numbers of many are fetched together."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from probe.measure.deferred import DeferredMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import ArraySink, Guard, Role
from probe.measure.records import PendingRecord, tensor_record
from probe.measure.statistics import Number, Numbers

#: the divisor of a tensor of zeros, in place of its largest magnitude
_TINY = 1e-37
#: instances of our own, as the listed functions may be patched
_PRIMITIVES = (
    "Cast Stack ReduceMax ReduceMin ReduceSum ReduceMean IsNan IsInf RealDiv Maximum Square Abs Equal Less Greater"
)


class DeviceMeasurer(DeferredMeasurer):
    """Adds reductions to MindSpore's pipeline and waits for nothing until ``complete``.

    Values are divided by the largest before they are added, so finite data never overflow. Sums are in float32, so Mean
    and Norm agree with the host's to about six digits. Tensors that are saved, complex or float64 are copied.

    Args:
        host: measures the copies.
        reduces: whether numbers suffice for a tensor that is not saved (no checksum).
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
        self._ops = SimpleNamespace(**{name: getattr(operations, name)() for name in _PRIMITIVES.split()})
        self._tiny = mindspore.Tensor(_TINY, mindspore.float32)
        self._floats: list[Any] = []
        self._integers: list[Any] = []
        self._tasks: list[tuple[PendingRecord, str, tuple[int, ...], str]] = []

    @property
    def has_pending(self) -> bool:
        """Whether numbers wait to be fetched, or copies to be measured."""
        return bool(self._tasks) or super().has_pending

    @property
    def is_full(self) -> bool:
        """Whether a batch is complete."""
        return len(self._tasks) >= self.most or super().is_full

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        dtype, empty = self._retry_to_find_culprit(_kind, tensor)
        if sink is not None or empty or not (dtype in self._floating or dtype in self._whole):
            return super().tensor(tensor, name, sink, role)
        kind = "float" if dtype in self._floating else "bool" if dtype == self._ms.bool_ else "int"
        run = functools.partial(self._own.run, self._reduce, kind)
        floats, integers = self._retry_to_find_culprit(run, tensor)
        self._floats += floats
        self._integers += integers
        pending = PendingRecord()
        self._tasks.append((pending, str(dtype), tensor._shape, kind))
        return pending

    def complete(self, guard: Guard) -> None:
        """Fetch the waiting numbers, all of a kind at once, and measure the copies."""
        tasks, floats, integers = self._tasks, self._floats, self._integers
        self._tasks, self._floats, self._integers = [], [], []
        super().complete(guard)
        if not tasks:
            return
        with guard("fetching numbers from the device"):
            singles, wholes = self._fetch(floats), self._fetch(integers)
            chosen = self._chosen
            for pending, dtype, shape, kind in tasks:
                numbers = _numbers(kind, singles, wholes)
                chosen_numbers = numbers if chosen is None else self._choice(numbers, shape, wholes)
                pending.record = tensor_record(dtype, shape, chosen_numbers)

    def forget(self) -> None:
        """Release remembered values, copies and numbers; the step is over."""
        self._tasks, self._floats, self._integers = [], [], []
        super().forget()

    def _fetch(self, scalars: Sequence[Any]) -> Iterator[Any]:
        return iter(self._own.run(self._ops.Stack, tuple(scalars)).asnumpy().tolist() if scalars else ())

    def _choice(self, four: Numbers, shape: tuple[int, ...], counts: Iterator[int]) -> Numbers:
        """Return the chosen statistics of one tensor, from the four and from the counts made on the device."""
        assert self._chosen is not None
        numbers: Numbers = {}
        for entry in self._chosen.table:
            counted = entry.device is not None
            numbers[entry.key] = next(counts) if counted else four.get(entry.key, math.prod(shape))
        return numbers

    def _reduce(self, kind: str, tensor: Any) -> tuple[list[Any], list[Any]]:
        """Return the float32 and the integer scalars that ``_numbers`` reads later, all still on the device."""
        floats, integers = self._four(kind, tensor)
        if self._chosen is not None:
            values = self._ops.Cast(tensor, self._ms.float32)
            for entry in self._chosen.table:
                if entry.device is not None:
                    name, other = entry.device
                    find = getattr(self._ops, name)
                    where = find(values) if other is None else find(values, other)
                    found = self._ops.Cast(where, self._ms.float32)
                    integers.append(self._ops.Cast(self._ops.ReduceSum(found), self._ms.int64))
        return floats, integers

    def _four(self, kind: str, tensor: Any) -> tuple[list[Any], list[Any]]:
        floats: list[Any] = []
        integers: list[Any] = []
        single, double = self._ms.float32, self._ms.int64
        values = self._ops.Cast(tensor, single)
        if kind == "float":
            largest, smallest = self._ops.ReduceMax(values), self._ops.ReduceMin(values)
            strange = self._ops.IsNan(values), self._ops.IsInf(values)
            integers += [
                self._ops.Cast(self._ops.ReduceSum(self._ops.Cast(found, single)), double) for found in strange
            ]
            floats += [largest, smallest]
        else:
            whole = self._ops.Cast(tensor, double)
            integers += [self._ops.ReduceMax(whole), self._ops.ReduceMin(whole)]
            if kind == "bool":
                return floats, integers
            largest, smallest = self._ops.ReduceMax(values), self._ops.ReduceMin(values)
        scale = self._ops.Maximum(self._ops.Maximum(self._ops.Abs(largest), self._ops.Abs(smallest)), self._tiny)
        unit = self._ops.RealDiv(values, scale)
        floats += [scale, self._ops.ReduceMean(unit), self._ops.ReduceSum(self._ops.Square(unit))]
        return floats, integers


def _kind(tensor: Any) -> tuple[Any, bool]:
    return tensor._dtype, not tensor._nbytes


def _numbers(kind: str, floats: Iterator[float], integers: Iterator[int]) -> Numbers:
    """Return the numbers of one tensor from the fetched scalars, in the order of ``_reduce``."""
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
