# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Selects the measurer for the settings and the device."""

from __future__ import annotations

from probe.config.settings import Settings
from probe.measure.measurer import Measurer


def select_measurer(settings: Settings) -> Measurer:
    """Return the meter for these settings and this process."""
    import mindspore

    from probe.measure.array_filter import ArrayFilter
    from probe.measure.deferred import DeferredMeasurer
    from probe.measure.device import DeviceMeasurer
    from probe.measure.extrema import ExtremaMeasurer
    from probe.measure.host import HostMeasurer
    from probe.measure.statistic_table import SelectedStatistics

    chosen = None if isinstance(settings.summary_mode, str) else SelectedStatistics(settings.summary_mode)
    kept = ArrayFilter(settings) if settings.when or settings.slice or settings.sample_mode else None
    host = HostMeasurer(settings.checksums, chosen, settings.exact_dtypes, kept)
    if settings.task == "nan_check":
        return ExtremaMeasurer(host)
    on_cpu = mindspore.get_context("device_target") == "CPU"
    if settings.measure == "device" or (settings.measure == "auto" and not on_cpu):
        return DeviceMeasurer(host, reduces=not settings.checksums)
    return DeferredMeasurer(host) if settings.async_dump else host
