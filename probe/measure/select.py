# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Selects the measurers for the settings and the device."""

from __future__ import annotations

from typing import NamedTuple

from probe.config.settings import Settings
from probe.measure.deferred import DeferredMeasurer
from probe.measure.device import DeviceMeasurer
from probe.measure.host import ArrayFilter, ExtremaMeasurer, HostMeasurer
from probe.measure.measurer import Measurer
from probe.measure.reductions import Reductions
from probe.measure.statistics import SelectedStatistics
from probe.measure.storage import Checksums, DeviceChecksums, HostChecksums


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
