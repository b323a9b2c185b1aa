# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records each update of an optimizer as one entry of a Cell: its gradients, its numbers, its states."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.cells import find_optimizers
from probe.capture.pynative.context import CaptureContext
from probe.capture.training.events import KnownOptimizers, Listener, updates
from probe.capture.training.optimizer_values import OptimizerValues
from probe.entry import Kind
from probe.naming import CELL, clean
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

#: numbers that the update itself changes
_COUNTED = ("global_step",)


class OptimizerHooks(HookGroup):
    """Records the updates of all optimizers. Nothing inside an optimizer is recorded.

    ``mode`` is the setting ``optimizer``. Optimizers below ``models`` are named by their paths.
    """

    def __init__(self, context: CaptureContext, mode: str, models: Any = ()) -> None:
        from mindspore import get_context, nn

        super().__init__([Listener(updates(), self._run)])
        for name, number in (("get_lr", "learning_rate"), ("get_weight_decay", "weight_decay")):
            self.add(Patch(nn.Optimizer, name, around(self._noting(number))))
        self._context, self._mode = context, mode
        self._below = find_optimizers(models)  # held: identities stay unique
        self._paths = {id(cell): path for path, cell in self._below}
        self._known = KnownOptimizers(may_run=get_context("device_target") == "CPU")
        self._used: dict[int, dict[str, Any]] = {}

    def _run(self, original: Callable[..., Any], optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        state, recorder = self._context.state, self._context.recorder
        if recorder is None or state.in_recorded_call:
            return original(optimizer, *args, **kwargs)
        call, values, key, name = None, None, "", type(optimizer).__name__
        state.in_recorded_call = True
        try:
            with recorder.guard("reading an optimizer", key=name):
                key, values = self._known.of(optimizer)
                key = clean(f"{CELL}.{self._paths.get(id(optimizer)) or key}.{name}")
            if values is not None and recorder.snapshot is not None and recorder.snapshot.lacks(optimizer):
                with recorder.guard("noting an optimizer", key=name):
                    recorder.snapshot.optimizer(optimizer, key, values)
            if values is not None and self._mode != "off" and recorder.task.records_updates:
                call = recorder.begin(Kind.CELL, key, args, {}, state.cell)
            update = functools.partial(original, optimizer, *args, **kwargs)
            if call is None or values is None:
                result = update()
            else:
                result = self._record(recorder, call, values, optimizer, update)
            if values is not None and recorder.snapshot is not None:
                with recorder.guard("noting the parameters after an update", key=name):
                    recorder.snapshot.updated(key, values.parameters.values())
            return result
        finally:
            if self._context.saved_tensors is not None and values is not None:
                self._context.saved_tensors.note_update(call.forward if call else key, values.parameters.values())
            state.in_recorded_call = False

    def _record(
        self, recorder: StepRecorder, call: Call, values: OptimizerValues, optimizer: Any, update: Callable[[], Any]
    ) -> Any:
        used: dict[str, Any] = {}
        self._used[id(optimizer)], has_ended = used, False
        states = {**values.states} if self._mode == "states" and call.recorded else None
        try:
            with recorder.guard("reading an optimizer", call):
                recorder.note_scalars(call, lambda read: values.scalars(read, {}))
                if states is not None:
                    recorder.note_states(call, states)
            result = update()
            recorder.synchronize()
            has_ended = True
        finally:
            del self._used[id(optimizer)]
            error = sys.exc_info()[1]
            if not has_ended and error is not None:
                recorder.fail(call, error)
        if used:
            with recorder.guard("reading the numbers of an optimizer", call):
                before = call.parts.get("input_kwargs", {})
                recorder.note_scalars(call, lambda read: values.scalars(read, used))
                call.parts.get("input_kwargs", {}).update({key: before[key] for key in _COUNTED if key in before})
        recorder.end(call, {**values.parameters, **states} if states is not None else ())
        return result

    def _noting(self, name: str) -> Callable[..., Any]:
        """Return what runs instead of a method that computes a number of the update: it keeps the number."""

        def run(original: Callable[..., Any], optimizer: Any) -> Any:
            result, used = original(optimizer), self._used.get(id(optimizer))
            if used is not None and result is not getattr(optimizer, name, None):
                used[name] = result
            return result

        return run
