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
from probe.measure.dtype_name import dtype_name
from probe.measure.host import ArrayFilter, ExtremaMeasurer, HostMeasurer
from probe.measure.measurer import (
    ArraySink,
    GradientSum,
    Guard,
    Measurer,
    Role,
    TensorRecord,
    tensor_record,
)
from probe.measure.ranges import Range
from probe.measure.reductions import Reductions
from probe.measure.statistics import FOUR, Numbers, SelectedStatistics
from probe.measure.storage import Checksums, DeviceChecksums, HostChecksums

#: a tensor of so many bytes is copied: one operation instead of four
_SMALL = 1024
#: kind -> the dtypes that are reduced; tensors of others are copied
_KINDS = {"float": "float16 bfloat16 float32 float8_e4m3fn float8_e5m2 hifloat8",
          "int": "int8 int16 int32 int64 uint8 qint4x2", "bool": "bool_"}  # fmt: skip
_dtype_and_size = operator.attrgetter("_dtype", "_nbytes")


@dataclass
class _Reduced:
    """A tensor whose scalars, or whose few values, are on the device; after a fetch they are numbers and an array."""

    dtype: str
    shape: tuple[int, ...]
    kind: str
    parts: list[
        tuple[str, list[Any]]
    ]  # floats and integers for the four numbers, then those of each other statistic
    values: list[Any]
    copy: Any = None  # for the user's own statistics


class DeviceMeasurer(DeferredMeasurer):
    """Adds few reductions to MindSpore's pipeline and waits for nothing until ``complete``.

    Sums are in float32, so Mean and Norm agree with the host's to about six digits. NaN and Inf show in the four
    numbers; they are counted where the user asks for it. Tensors that are saved, complex or float64 are copied. So are
    all unless ``reduces``: a checksum needs more than numbers, and so does an own statistic of an array.
    """

    def __init__(self, host: HostMeasurer, reduces: bool, reductions: Reductions) -> None:
        import mindspore

        super().__init__(host)
        self._host = host
        self._table = () if host.chosen is None else host.chosen.table
        reduces = reduces and (host.chosen is None or host.chosen.own.on_device)
        named = [
            (name, kind) for kind, names in _KINDS.items() if reduces for name in names.split()
        ]
        self._kinds = {
            getattr(mindspore, name): kind for name, kind in named if hasattr(mindspore, name)
        }
        self._reductions = reductions
        self._reduced: deque[_Reduced] = deque()

    def tensor(self, tensor: Any, name: str, sink: ArraySink | None, role: Role) -> Any:
        """Return the record of one tensor, known after ``complete``."""
        dtype, size = self._retry_to_find_culprit(_dtype_and_size, tensor)
        if not size:
            return self._measurer.tensor(tensor, name, sink, role)
        if sink is not None or dtype not in self._kinds or self.is_untouchable(tensor, name):
            return super().tensor(tensor, name, sink, role)
        one = _Reduced(dtype_name(dtype), tensor._shape, self._kinds[dtype], [], [])
        if dtype in self._views.dtypes:
            tensor = self._retry_to_find_culprit(
                partial(self.own_operations.run, self._reductions.plain), tensor
            )
        if size <= _SMALL:
            one.values = [self.copy(tensor)]
        else:
            self._retry_to_find_culprit(partial(self.own_operations.run, self._reduce, one), tensor)
            one.copy = (
                self.copy(tensor) if self._host.chosen and self._host.chosen.own.chosen else None
            )
        self._reduced.append(one)
        return self._later(partial(self._record, one))

    def sum_later(self, total: GradientSum, name: str, sink: ArraySink | None) -> Any:
        """Return the record of a sum. Its terms are added on the device, so that it needs no fetch of its own."""
        terms = total.take_copies()
        if not terms:
            return super().sum_later(total, name, sink)
        added = functools.reduce(
            partial(self.own_operations.run, self._reductions.run, "Add"), terms
        )
        return self.tensor(added, name, sink, Role.OUTPUT)

    def complete(self, guard: Guard) -> None:
        """Fetch the waiting numbers, all of a kind at once, and measure the copies."""
        count = len(
            self._waiting
        )  # first: a tensor that waits has its numbers, also where another thread adds some
        reduced = [self._reduced.popleft() for _ in range(len(self._reduced))]
        with guard("fetching numbers from the device"):
            self.own_operations.run(self._fetch, reduced)
        self.complete_first(count, guard)

    def drop(self) -> None:
        """Release what waits. Its records stay null."""
        self._reduced.clear()
        super().drop()

    def _is_of_bytes(self, tensor: Any) -> bool:
        return tensor._dtype in self._views.dtypes

    def _copied(self, tensor: Any) -> Any:
        self._bytes += tensor._nbytes
        return super()._copied(tensor)

    def _reduce(self, one: _Reduced, tensor: Any) -> None:
        reductions = self._reductions
        kind = one.kind
        chosen = [entry for entry in self._table if entry.take]
        values = reductions.values(tensor, kind) if chosen or kind != "bool" else tensor
        four = (
            ([], [reductions.count(tensor)])
            if kind == "bool"
            else reductions.four(tensor, values, kind)
        )
        taken = Range(reductions, values, one.dtype)
        own = [
            ("int" if entry.is_whole else "float", entry.take(taken))
            for entry in chosen
            if entry.take
        ]
        one.parts = [*zip(("float", "int"), four), *own]

    def _fetch(self, reduced: list[_Reduced]) -> None:
        fetch = self._reductions.fetch
        parts = [(kind, scalars, scalars.copy()) for one in reduced for kind, scalars in one.parts]
        for _, scalars, _ in parts:
            scalars.clear()  # a failed fetch leaves no tensors where numbers are expected
        for wanted in ("float", "int"):
            chosen = [(scalars, given) for kind, scalars, given in parts if kind == wanted]
            found = iter(fetch([scalar for _, given in chosen for scalar in given], wanted))
            for scalars, given in chosen:
                scalars += [number.item() for number in itertools.islice(found, len(given))]
        for kind in _KINDS:
            small = [one for one in reduced if one.values and one.kind == kind]
            for one, array in zip(small, fetch([item.values[0] for item in small], kind)):
                one.values = [array]

    def _record(self, one: _Reduced) -> TensorRecord:
        if one.values:
            return self._host.array(one.values[0], one.dtype, "", None)
        floats, integers, *others = [scalars for _, scalars in one.parts]
        four = self._four(one, floats, integers)
        found = iter(others)
        size = math.prod(one.shape)
        if self._host.chosen is not None:
            four = {
                it.key: it.finish(next(found), size) if it.take else four.get(it.key)
                for it in self._table
            }
            four.update(self._host.chosen.own.of_tensor(one.copy) if one.copy is not None else {})
        return tensor_record(one.dtype, one.shape, four)

    def _four(self, one: _Reduced, floats: list[float], integers: list[int]) -> Numbers:
        """Return the four numbers. Max and Min may ignore a NaN; Norm does not."""
        if one.kind == "bool":
            total = integers[0]
            return dict(zip(FOUR, (total > 0, total == math.prod(one.shape), None, None)))
        largest, smallest = (integers if one.kind == "int" else floats)[:2]
        mean, norm, *scale = floats[0 if one.kind == "int" else 2 :]
        if math.isnan(norm):
            return dict.fromkeys(FOUR, math.nan)
        if one.kind == "float" and not (math.isfinite(largest) and math.isfinite(smallest)):
            both = largest == math.inf and smallest == -math.inf
            return dict(
                zip(FOUR, (largest, smallest, math.nan if both else largest + smallest, math.inf))
            )
        norm = math.sqrt(norm) if self._reductions.norm_is_square else norm
        factor = scale[0] if scale else 1.0
        return dict(zip(FOUR, (largest, smallest, mean * factor, norm * factor)))


class Measurers(NamedTuple):
    """The measurer of a run, and the one that serves while tensors may not be read."""

    measurer: Measurer
    copier: DeferredMeasurer


def host_measurer(settings: Settings, kind: type[HostMeasurer] = HostMeasurer) -> HostMeasurer:
    """Return the measurer of this kind that computes numbers on the host."""
    chosen = (
        None
        if isinstance(settings.summary_mode, str)
        else SelectedStatistics(settings.summary_mode)
    )
    array_filter = (
        ArrayFilter(settings) if settings.when or settings.slice or settings.sample_mode else None
    )
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
