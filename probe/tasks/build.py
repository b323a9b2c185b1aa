# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Builds the task of a step with its measurement queue. A new task is a row in ``_BUILDERS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from probe.config.settings import Settings
from probe.entry import Entry
from probe.measure.device import Measurers
from probe.measure.host import ExtremaMeasurer
from probe.measure.measurer import ArraySink
from probe.measure.storage import StorageNotes
from probe.recording.call import GradientUse, Task
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.step_recorder import NameFilter
from probe.store.documents import DumpWriter
from probe.tasks.nan_check import FirstNonFinite, NanCheck
from probe.tasks.values import DebugTask, ValuesTask


class StepParts(NamedTuple):
    """The parts of a step from which its task is built."""

    settings: Settings
    measurers: Measurers  # the measurers of the run
    wait: Callable[[], None]  # waits for asynchronous work; raises a pending error of the training
    writer: DumpWriter
    name_filter: NameFilter  # selects calls by name
    stacks: CallStacks
    hits: int  # the number of findings in earlier steps
    make_queue: Callable[..., MeasurementQueue] = MeasurementQueue

    def queue(self, accept: Callable[[Entry], None], complete_only: bool = False) -> MeasurementQueue:
        """Return a queue that passes entries on to ``accept``."""
        return self.make_queue(*self.measurers, self.wait, accept, self.writer.errors.guard, complete_only)


def build_task(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    """Return the task that the settings name, and its queue."""
    return _BUILDERS["debug" if parts.settings.level == "debug" else parts.settings.task](parts)


def _statistics(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue, sink, keeps = parts.queue(parts.writer.accept), parts.writer.array, parts.name_filter.keeps_arrays
    keeps_any = bool(parts.settings.tensor_list)
    return _values(parts, queue, lambda name: sink if keeps_any and keeps(name) else None), queue


def _tensor(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue, sink = parts.queue(parts.writer.accept), parts.writer.array
    return _values(parts, queue, lambda name: sink), queue


def _values(parts: StepParts, queue: MeasurementQueue, sink_of: Callable[[str], ArraySink | None]) -> ValuesTask:
    notes = StorageNotes(queue.measure, parts.writer.tell) if parts.settings.storage else None
    return ValuesTask(queue, sink_of, parts.settings.data_mode, notes)


def _structure(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    gradients = GradientUse.ORDER if parts.settings.extra_info else GradientUse.NONE
    without_waiting = parts._replace(wait=lambda: None)
    return Task(parts.settings.data_mode, gradients), without_waiting.queue(parts.writer.accept)


def _nan_check(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    measurer = parts.measurers.measurer
    assert isinstance(measurer, ExtremaMeasurer)
    finder = FirstNonFinite(measurer, parts.writer, parts.stacks, parts.settings, parts.hits)
    queue = finder.queue = parts.queue(finder.accept, complete_only=True)
    return NanCheck(finder, queue, parts.writer.array, parts.settings.data_mode), queue


def _debug(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue = parts.queue(parts.writer.accept)
    return DebugTask(queue, parts.writer.array if parts.settings.task == "tensor" else None), queue


_BUILDERS: Mapping[str, Callable[[StepParts], tuple[Task, MeasurementQueue]]] = {
    "statistics": _statistics,
    "tensor": _tensor,
    "structure": _structure,
    "nan_check": _nan_check,
    "debug": _debug,
}
