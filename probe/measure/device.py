# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measuring on the device: MindSpore reduces tensors, and numbers are fetched together. And the choice of measurers."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from probe.config.settings import Settings
from probe.measure.deferred import DeferredMeasurer
from probe.measure.host import ArrayFilter, ExtremaMeasurer, HostMeasurer
from probe.measure.measurer import ArraySink, GradientSum, Guard, Measurer, Role, TensorRecord, tensor_record
from probe.measure.reductions import Reductions
from probe.measure.statistics import FOUR, Numbers, SelectedStatistics
from probe.measure.storage import Checksums, DeviceChecksums, HostChecksums

#: a tensor of so many bytes is copied: one operation instead of four
_SMALL = 1024
#: kind -> the dtypes that are reduced; tensors of others are copied
_KINDS = {"float": "float16 bfloat16 float32", "int": "int8 int16 int32 int64 uint8", "bool": "bool_"}
_dtype_and_size = operator.attrgetter("_dtype", "_nbytes")


@dataclass
class _Reduced:
    """A tensor whose scalars, or whose few values, are on the device; after a fetch they are numbers and an array."""

    dtype: str
    shape: tuple[int, ...]
    kind: str
    floats: list[Any]
    integers: list[Any]
    values: list[Any]


class DeviceMeasurer(DeferredMeasurer):
    """Adds few reductions to MindSpore's pipeline and waits for nothing until ``complete``.

    Sums are in float32, so Mean and Norm agree with the host's to about six digits. NaN and Inf show in the four
    numbers; they are counted where the user asks for it. Tensors that are saved, complex or float64 are copied. So are
    all unless ``reduces``: a checksum needs more than numbers.
    """

    def __init__(self, host: HostMeasurer, reduces: bool, reductions: Reductions) -> None:
        import mindspore

        super().__init__(host)
        self._host = host
        self._table = () if host.chosen is None else host.chosen.table
        kinds = _KINDS if reduces else {}
        self._kinds = {getattr(mindspore, name): kind for kind, names in kinds.items() for name in names.split()}
        self._reductions = reductions
        self._reduced: deque[_Reduced] = deque()

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        dtype, size = self._retry_to_find_culprit(_dtype_and_size, tensor)
        if not size:
            return self._measurer.tensor(tensor, name, sink, role)
        if sink is not None or dtype not in self._kinds or self.is_untouchable(tensor, name):
            return super().tensor(tensor, name, sink, role)
        one = _Reduced(str(dtype), tensor._shape, self._kinds[dtype], [], [], [])
        if size <= _SMALL:
            one.values = [self.copy(tensor)]
        else:
            self._retry_to_find_culprit(partial(self.own_operations.run, self._reduce, one), tensor)
        self._reduced.append(one)
        return self._later(partial(self._record, one))

    def sum_later(self, total: GradientSum, name: str, sink: ArraySink | None) -> Any:
        """Return the record of a sum. Its terms are added on the device, so that it needs no fetch of its own."""
        terms = total.take_copies()
        if not terms:
            return super().sum_later(total, name, sink)
        added = functools.reduce(partial(self.own_operations.run, self._reductions.run, "Add"), terms)
        return self.tensor(added, name, sink, Role.OUTPUT)

    def complete(self, guard: Guard) -> None:
        """Fetch the waiting numbers, all of a kind at once, and measure the copies."""
        count = len(self._waiting)  # first: a tensor that waits has its numbers, also where another thread adds some
        reduced = [self._reduced.popleft() for _ in range(len(self._reduced))]
        with guard("fetching numbers from the device"):
            self.own_operations.run(self._fetch, reduced)
        self.complete_first(count, guard)

    def drop(self) -> None:
        """Release what waits. Its records stay null."""
        self._reduced.clear()
        super().drop()

    def _copied(self, tensor: Any) -> Any:
        self._bytes += tensor._nbytes
        return super()._copied(tensor)

    def _reduce(self, one: _Reduced, tensor: Any) -> None:
        reductions, kind = self._reductions, one.kind
        one.floats, one.integers = [], []
        counts = [entry.device for entry in self._table if entry.device]
        values = reductions.values(tensor, kind) if counts or kind != "bool" else tensor
        if kind == "bool":
            one.integers.append(reductions.count(tensor))
        else:
            one.floats, one.integers = reductions.four(tensor, values, kind)
        one.integers += [reductions.count(values, *device) for device in counts]

    def _fetch(self, reduced: list[_Reduced]) -> None:
        fetch = self._reductions.fetch
        waiting = [(one, one.floats, one.integers) for one in reduced]
        for one in reduced:
            one.floats, one.integers = [], []  # a failed fetch leaves no tensors where numbers are expected
        floats = iter(fetch([scalar for _, scalars, _ in waiting for scalar in scalars], "float"))
        integers = iter(fetch([scalar for _, _, scalars in waiting for scalar in scalars], "int"))
        for one, given, whole in waiting:
            one.floats = [found.item() for found in itertools.islice(floats, len(given))]
            one.integers = [found.item() for found in itertools.islice(integers, len(whole))]
        for kind in _KINDS:
            small = [one for one in reduced if one.values and one.kind == kind]
            for one, array in zip(small, fetch([item.values[0] for item in small], kind)):
                one.values = [array]

    def _record(self, one: _Reduced) -> TensorRecord:
        if one.values:
            return self._host.array(one.values[0], one.dtype, "", None)
        counts = one.integers[1 if one.kind == "bool" else 2 if one.kind == "int" else 0 :]
        four = self._four(one)
        if self._host.chosen is not None:
            found = iter(counts)
            size = math.prod(one.shape)
            four = {entry.key: next(found) if entry.device else four.get(entry.key, size) for entry in self._table}
        return tensor_record(one.dtype, one.shape, four)

    def _four(self, one: _Reduced) -> Numbers:
        """Return the four numbers. Max and Min may ignore a NaN; Norm does not."""
        if one.kind == "bool":
            total = one.integers[0]
            return dict(zip(FOUR, (total > 0, total == math.prod(one.shape), None, None)))
        largest, smallest = (one.integers if one.kind == "int" else one.floats)[:2]
        mean, norm, *scale = one.floats[0 if one.kind == "int" else 2 :]
        if math.isnan(norm):
            return dict.fromkeys(FOUR, math.nan)
        if one.kind == "float" and not (math.isfinite(largest) and math.isfinite(smallest)):
            both = largest == math.inf and smallest == -math.inf
            return dict(zip(FOUR, (largest, smallest, math.nan if both else largest + smallest, math.inf)))
        norm, factor = math.sqrt(norm) if self._reductions.norm_is_square else norm, scale[0] if scale else 1.0
        return dict(zip(FOUR, (largest, smallest, mean * factor, norm * factor)))


class Measurers(NamedTuple):
    """The measurer of a run, and the one that serves while tensors may not be read."""

    measurer: Measurer
    copier: DeferredMeasurer


def host_measurer(settings: Settings, kind: type[HostMeasurer] = HostMeasurer) -> HostMeasurer:
    """Return the measurer of this kind that computes numbers on the host."""
    chosen = None if isinstance(settings.summary_mode, str) else SelectedStatistics(settings.summary_mode)
    array_filter = ArrayFilter(settings) if settings.when or settings.slice or settings.sample_mode else None
    return kind(settings.checksums, chosen, settings.exact_dtypes, array_filter)


def _reductions(settings: Settings) -> Reductions | None:
    """Return the reductions of the device; None where numbers are computed on the host."""
    import mindspore

    on_cpu = mindspore.get_context("device_target") == "CPU"
    is_on_device = settings.measure == "device" or (settings.measure == "auto" and not on_cpu)
    return Reductions(on_cpu, scaled=settings.precision == "high") if is_on_device else None


def select_checksums(settings: Settings) -> Checksums:
    """Return what takes the checksums of tensors."""
    reductions = _reductions(settings)
    return DeviceChecksums(reductions) if reductions else HostChecksums()


def select_measurers(settings: Settings) -> Measurers:
    """Return the measurers for these settings and this process."""
    host = host_measurer(settings)
    reductions = _reductions(settings) if settings.task != "nan_check" else None
    if reductions is not None:
        device = DeviceMeasurer(host, reduces=not settings.checksums, reductions=reductions)
        return Measurers(device, device)
    measurer = ExtremaMeasurer(host) if settings.task == "nan_check" else host
    return Measurers(measurer, DeferredMeasurer(measurer))
