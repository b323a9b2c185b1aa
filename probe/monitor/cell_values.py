# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Measures the inputs, outputs and gradients of the Cells that the setting ``list`` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from probe.capture.pynative.context import CallChange
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
from probe.findings.sentence import Sentence
from probe.measure.device import select_measurers
from probe.measure.measurer import GradientSum
from probe.naming import BACKWARD, FORWARD
from probe.pytree import Slot, as_outputs, leaves
from probe.recording.call import Call, GradientUse, Task
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.step_recorder import NameFilter, Sink, StepRecorder
from probe.series.series_name import Slot as SeriesSlot
from probe.store.error_log import ErrorLog

Note = Callable[[SeriesSlot, Any], None]  # takes the place of a tensor in a call, and its values
#: settings that watch calls, and nothing beside them
ONLY = Settings(extra_info=False, optimizer="off", snapshot=False, unlisted=False)


class CellTask(Task):
    """Passes tensors on as they are now, and arrays of sums; keeps no entry. ``functions`` are names, None for all."""

    has_values = True
    keeps_entries = records_updates = records_parameters = False

    def __init__(
        self, modes: frozenset[str], note: Note, functions: frozenset[str] | None = None
    ) -> None:
        from mindspore import Tensor

        super().__init__(modes, GradientUse.VALUES)
        self._tensor = Tensor
        self._note = note
        self.functions = functions

    def inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Note the inputs; see ``Task``."""
        self._note_all(call, "input", (args, dict(kwargs)))
        return {}

    def outputs(
        self, call: Call, result: Any, parameters: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Note the outputs; see ``Task``."""
        self._note_all(call, "output", as_outputs(result))
        return {}

    def _note_all(self, call: Call, side: str, values: Any) -> None:
        tensors = (leaf for leaf in leaves(values) if isinstance(leaf, self._tensor))
        for place, tensor in enumerate(tensors):
            self._note(SeriesSlot(call.key, FORWARD, str(call.number), f"{side}.{place}"), tensor)

    def gradient(self, call: Call, slot: Slot, tensor: Any) -> Any:
        """Note a gradient; see ``Task``."""
        self._note(SeriesSlot(call.key, BACKWARD, str(call.number), slot.place), tensor)

    def gradient_sum(self, call: Call, slot: Slot, total: GradientSum) -> Any:
        """Note a gradient that was summed; see ``Task``."""
        if total.resolve() and total.array is not None:
            self.gradient(call, slot, total.array)


class NoEntries(Sink):
    """Keeps no entry."""

    def __init__(self, errors: ErrorLog) -> None:
        self.errors = errors

    def accept(self, entry: object) -> None:
        """Keep nothing of a finished entry."""

    def draft(self, entry: object) -> None:
        """Keep nothing of an entry that is not finished."""

    def tell(self, said: Sentence) -> None:
        """Keep nothing of a finding."""


class CellValues:
    """Watches the Cells that the setting ``list`` names; at level mix functions too."""

    def __init__(
        self,
        settings: Settings,
        errors: ErrorLog,
        task: CellTask,
        change: CallChange | None = None,
    ) -> None:
        self._settings = settings
        self._errors = errors
        self._task = task
        self._capture = PyNativeCapture(settings, functions=task.functions, change=change)
        self._measurers = select_measurers(settings)
        self._recorder: StepRecorder | None = None

    def install(self, models: Any) -> None:
        """Begin to watch; also again within a step."""
        if self._recorder is None:
            sink = NoEntries(self._errors)
            task = self._task
            queue = MeasurementQueue(
                *self._measurers, self._capture.wait, sink.accept, self._errors.guard
            )
            self._recorder = StepRecorder(
                self._settings, task, queue, sink, CallStacks(), NameFilter(self._settings)
            )
        self._capture.watch(models)
        self._capture.install(self._recorder)

    def remove(self) -> None:
        """Watch nothing but gradients of a backward that may follow."""
        self._capture.remove()

    def end_step(self) -> list[str]:
        """End the step; return the names in ``list`` that no Cell has matched."""
        recorder = self._recorder
        self._recorder = None
        self._capture.end_step()
        return [] if recorder is None else recorder.close()
