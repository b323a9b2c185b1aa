# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The state that the hooks of one capture share, and the begin and end of every call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from probe.capture.autograd.gradient_hooks import GradientHooks
from probe.capture.code_patches import CodePatches
from probe.capture.patches import HookGroup
from probe.capture.pynative.comm_handles import CommHandleTracker
from probe.capture.pynative.saved_tensors import SavedTensors
from probe.capture.pynative.thread_state import OpenCall, ReplayLog, ThreadState
from probe.entry import Kind
from probe.recording.step_recorder import StepRecorder


class CaptureContext:
    """Shared by all hooks of one capture."""

    def __init__(self, gradients: GradientHooks) -> None:
        self.recorder: StepRecorder | None = None  # records the calls; None while nothing is recorded
        self.state = ThreadState()
        self.hooks = HookGroup()  # the hooks that are suspended while MindSpore compiles
        self.codes = CodePatches(self.state)  # the functions whose code is replaced
        #: the logs of each recomputed Cell by its identity, the newest last
        self.replay_logs: defaultdict[int, list[ReplayLog]] = defaultdict(list)
        self.handles = CommHandleTracker()  # follows the handles of asynchronous communication
        self.saved_tensors: SavedTensors | None = None  # guards the tensors that are kept for the backward
        self._gradients = gradients

    def begin(
        self, key: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], cell: Any = None, **flags: bool
    ) -> OpenCall | None:
        """Begin a call; return None if nothing of it is recorded. Raises errors of the training.

        ``key`` has the names of its entries without number and direction. ``flags`` are ``is_compiled`` for a compiled
        function, ``is_custom`` for one of the user's own.
        """
        state, recorder, repeated = self.state, self.recorder, None
        if recorder is None:
            return None
        if state.replays:
            repeated = state.replays[-1].pop(key)
            if repeated is None:
                return None
        kind = Kind.API if cell is None else Kind.CELL
        call = recorder.begin(kind, key, args, kwargs, state.cell, repeated)
        if call is None:
            return None
        if state.micro is not None:
            call.micro = state.micro
        for log in state.logs:
            log.add(key, call)
        opened = OpenCall(recorder, call, repeated is not None, cell)
        if cell is not None:
            state.cells.append(opened)
        elif not (call.recorded or call.watched):
            return None
        if call.watched:
            with recorder.guard("watching the gradients of a call", call):
                opened.graph_inputs = self._gradients.find_inputs(recorder, args, kwargs, cell, **flags)
        return opened

    def watch_gradients(self, opened: OpenCall, result: Any) -> None:
        """Watch the gradients of a call that has returned."""
        if opened.graph_inputs is not None:
            with opened.recorder.guard("watching the gradients of a call", opened.call):
                self._gradients.attach(opened.recorder, opened.call, opened.graph_inputs, result)

    def end(self, opened: OpenCall, result: Any, parameters: Mapping[str, Any] | None = None) -> None:
        """End a call that has returned. Raises ``queue.pending_error``."""
        if not opened.is_repeated:
            opened.recorder.end(opened.call, result, parameters)

    def fail(self, opened: OpenCall, error: BaseException) -> None:
        """End a call that has raised."""
        if not opened.is_repeated:
            opened.recorder.fail(opened.call, error)
