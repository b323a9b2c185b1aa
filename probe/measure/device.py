# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Measuring on the device: MindSpore reduces each tensor, and the numbers of many are fetched together."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from probe.measure.deferred import MOST_TENSORS, DeferredMeasurer
from probe.measure.host import HostMeasurer
from probe.measure.measurer import ArraySink, Guard, Role
from probe.measure.records import PendingRecord, tensor_record
from probe.measure.statistics import FOUR, Number, Numbers, nonfinite_numbers

#: a batch is measured when its copies have this many bytes, as they wait in the device's memory
MOST_BYTES = 64 << 20
#: the divisor of a tensor of zeros, in place of its largest magnitude
_TINY = 1e-37
#: instances of our own, as the listed functions may be patched
_OPS = "Cast Stack ReduceMax ReduceMin ReduceSum ReduceMean IsNan IsInf RealDiv Maximum Square Abs Equal Less Greater"
#: kind -> the dtypes that are reduced; tensors of others are copied
_KINDS = {"float": "float16 bfloat16 float32", "int": "int8 int16 int32 int64 uint8", "bool": "bool_"}
_dtype_and_size = operator.attrgetter("_dtype", "_nbytes")


class _Reduced(NamedTuple):
    """A tensor whose scalars are still on the device."""

    pending: PendingRecord
    dtype: str
    shape: tuple[int, ...]
    kind: str
    floats: list[Any]
    integers: list[Any]


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
        kinds = _KINDS if reduces else {}
        self._kinds = {getattr(mindspore, name): kind for kind, names in kinds.items() for name in names.split()}
        self._ops = SimpleNamespace(**{name: getattr(operations, name)() for name in _OPS.split()})
        self._ms = mindspore
        self._tiny = mindspore.Tensor(_TINY, mindspore.float32)
        self._bytes = 0
        self._reduced: list[_Reduced] = []

    @property
    def has_pending(self) -> bool:
        """Whether numbers wait to be fetched, or copies to be measured."""
        return bool(self._reduced) or super().has_pending

    @property
    def is_full(self) -> bool:
        """Whether a batch is complete."""
        return self._bytes > MOST_BYTES or len(self._reduced) >= MOST_TENSORS or super().is_full

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        dtype, size = self._retry_to_find_culprit(_dtype_and_size, tensor)
        if not size:
            return self._measurer.tensor(tensor, name, sink, role)
        if sink is not None or dtype not in self._kinds:
            return super().tensor(tensor, name, sink, role)
        kind = self._kinds[dtype]
        scalars = self._retry_to_find_culprit(partial(self.own_operations.run, self._reduce, kind), tensor)
        pending = PendingRecord()
        self._reduced.append(_Reduced(pending, str(dtype), tensor._shape, kind, *scalars))
        return pending

    def complete(self, guard: Guard) -> None:
        """Fetch the waiting numbers, all of a kind at once, and measure the copies."""
        reduced, self._reduced, self._bytes = self._reduced, [], 0
        super().complete(guard)
        with guard("fetching numbers from the device"):
            floats = self._fetch([scalar for one in reduced for scalar in one.floats])
            integers = self._fetch([scalar for one in reduced for scalar in one.integers])
            for one in reduced:
                numbers = self._numbers(one, floats, integers)
                one.pending.record = tensor_record(one.dtype, one.shape, numbers)

    def forget(self) -> None:
        """Release remembered values, copies and numbers; the step is over."""
        self._reduced, self._bytes = [], 0
        super().forget()

    def _copied(self, tensor: Any) -> Any:
        self._bytes += tensor._nbytes
        return super()._copied(tensor)

    def _fetch(self, scalars: list[Any]) -> Iterator[Any]:
        return iter(self.own_operations.run(self._ops.Stack, tuple(scalars)).asnumpy().tolist() if scalars else ())

    def _reduce(self, kind: str, tensor: Any) -> tuple[list[Any], list[Any]]:
        """Return the float32 and the integer scalars that ``_numbers`` reads later, all still on the device."""
        ops, values = self._ops, self._ops.Cast(tensor, self._ms.float32)
        floats = []
        if kind == "float":
            integers = [self._count(ops.IsNan(values)), self._count(ops.IsInf(values))]
        else:
            whole = ops.Cast(tensor, self._ms.int64)
            integers = [ops.ReduceMax(whole), ops.ReduceMin(whole)]
        if kind != "bool":
            largest, smallest = ops.ReduceMax(values), ops.ReduceMin(values)
            scale = ops.Maximum(ops.Maximum(ops.Abs(largest), ops.Abs(smallest)), self._tiny)
            unit = ops.RealDiv(values, scale)
            floats = [largest, smallest, scale, ops.ReduceMean(unit), ops.ReduceSum(ops.Square(unit))]
        for entry in self._chosen.table if self._chosen is not None else ():
            if entry.device:
                name, *others = entry.device
                integers.append(self._count(getattr(ops, name)(values, *others)))
        return floats, integers

    def _count(self, found: Any) -> Any:
        return self._ops.Cast(self._ops.ReduceSum(self._ops.Cast(found, self._ms.float32)), self._ms.int64)

    def _numbers(self, one: _Reduced, floats: Iterator[float], integers: Iterator[int]) -> Numbers:
        """Return the numbers of one tensor from the fetched scalars, in the order of ``_reduce``."""
        first, second = next(integers), next(integers)
        if one.kind == "bool":
            four: Numbers = dict(zip(FOUR, (bool(first), bool(second), None, None)))
        else:
            largest, smallest, scale, mean, square = itertools.islice(floats, 5)
            ends: tuple[Number, Number] = (first, second) if one.kind == "int" else (largest, smallest)
            four = dict(zip(FOUR, (*ends, mean * scale, math.sqrt(square) * scale)))
            if one.kind == "float" and (first or second):
                four = nonfinite_numbers(largest, smallest, largest + smallest, first, second)
        if self._chosen is None:
            return four
        return {
            entry.key: next(integers) if entry.device else four.get(entry.key, math.prod(one.shape))
            for entry in self._chosen.table
        }
