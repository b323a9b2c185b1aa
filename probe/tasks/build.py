# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Builds the task of a step with its measurement queue. A new task is a row in ``_BUILDERS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from probe.config.settings import Settings
from probe.measure.extrema import ExtremaMeasurer
from probe.measure.select import Measurers
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.name_filter import NameFilter
from probe.recording.task import Task
from probe.store.dump_writer import DumpWriter
from probe.tasks.debug import DebugTask
from probe.tasks.nan_check import FirstNonFinite, NanCheck
from probe.tasks.structure import NoMeasurer, StructureTask
from probe.tasks.values import ValuesTask


class StepParts(NamedTuple):
    """The parts of a step that tasks are built of.

    Attributes:
        settings: the settings.
        measurers: the measurers of the run.
        wait: waits for asynchronous work; raises a pending error of the training.
        writer: the files of the step.
        name_filter: selects calls by name.
    """

    settings: Settings
    measurers: Measurers
    wait: Callable[[], None]
    writer: DumpWriter
    name_filter: NameFilter


def build_task(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    """Return the task that the settings name, and its queue."""
    return _BUILDERS["debug" if parts.settings.level == "debug" else parts.settings.task](parts)


def _queue(parts: StepParts) -> MeasurementQueue:
    measurers, writer = parts.measurers, parts.writer
    return MeasurementQueue(measurers.measurer, measurers.copier, parts.wait, writer.write, writer.errors.guard)


def _values(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue, sink, keeps_arrays = _queue(parts), parts.writer.array, parts.name_filter.keeps_arrays
    if parts.settings.task == "tensor":
        return ValuesTask(queue, lambda name: sink, parts.settings.data_mode), queue
    if parts.settings.tensor_list:
        return ValuesTask(queue, lambda name: sink if keeps_arrays(name) else None, parts.settings.data_mode), queue
    return ValuesTask(queue, lambda name: None, parts.settings.data_mode), queue


def _structure(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    nothing, writer = NoMeasurer(), parts.writer
    queue = MeasurementQueue(nothing, nothing, lambda: None, writer.write, writer.errors.guard)
    return StructureTask(parts.settings.data_mode, parts.settings.extra_info), queue


def _nan_check(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    (measurer, copier), writer = parts.measurers, parts.writer
    assert isinstance(measurer, ExtremaMeasurer)

    def raise_later(error: BaseException) -> None:
        queue.raise_later(error)

    finder = FirstNonFinite(measurer, writer, parts.settings, raise_later)
    queue = MeasurementQueue(measurer, copier, parts.wait, finder.accept, writer.errors.guard, complete_only=True)
    return NanCheck(finder, queue, writer.array, parts.settings.data_mode), queue


def _debug(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue = _queue(parts)
    return DebugTask(queue, parts.writer.array if parts.settings.task == "tensor" else None), queue


_BUILDERS: Mapping[str, Callable[[StepParts], tuple[Task, MeasurementQueue]]] = {
    "statistics": _values,
    "tensor": _values,
    "structure": _structure,
    "nan_check": _nan_check,
    "debug": _debug,
}
