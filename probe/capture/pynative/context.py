# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The hot path: the state that the hooks of one capture share, and the begin and end of every call.

``ApiHooks`` records the outermost calls of functions on each thread.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from probe.capture.autograd.gradient_hooks import GradientHooks
from probe.capture.code_patches import CodePatches
from probe.capture.patches import HookGroup
from probe.capture.pynative.comm_handles import CommHandleTracker
from probe.capture.pynative.counted_calls import CountedCalls
from probe.capture.pynative.thread_state import OpenCall, ReplayLog, ThreadState
from probe.entry import Kind
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder

#: on Ascend it returns the part that was written, and Python drops that: its outcome is the tensor
_CHANGES_FIRST = "Tensor.__setitem__"
_WATCHING = "watching the gradients of a call"


#: a call of an API, its original, its inputs by place and by name -> the function that runs in place of the original
AroundCalls = Callable[[Call, Callable[..., Any], Any, Any], Callable[..., Any]]


class CallChange(Protocol):
    """Changes calls of a training."""

    def around(
        self, call: Call, original: Callable[..., Any], inputs: Any, named: Any
    ) -> Callable[..., Any]:
        """Return the function that runs in place of the original of an API."""

    def hooks(self, state: ThreadState) -> HookGroup:
        """Return the hooks of Cells and updates; ``state`` has the Cells that run."""


class CaptureContext:
    """Shared by all hooks of one capture."""

    def __init__(self, gradients: GradientHooks, counted: CountedCalls | None = None) -> None:
        self.recorder: StepRecorder | None = (
            None  # records the calls; None while nothing is recorded
        )
        self.state = ThreadState()
        self.hooks = HookGroup()  # the hooks that are suspended while MindSpore compiles
        self.codes = CodePatches(self.state)  # the functions whose code is replaced
        #: the logs of each recomputed Cell by its identity, the newest last
        self.replay_logs: defaultdict[int, list[ReplayLog]] = defaultdict(list)
        self.handles = CommHandleTracker()  # follows the handles of asynchronous communication
        #: runs around each call of an API; None where nothing does
        self.around_calls: AroundCalls | None = None
        #: chooses the calls that are recorded, by their numbers; None where all are
        self.counted = counted
        self._gradients = gradients

    def begin(
        self,
        key: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        cell: Any = None,
        **flags: Any,
    ) -> OpenCall | None:
        """Begin a call; return None if nothing of it is recorded. Raises errors of the training.

        ``key`` has the names of its entries without number and direction. ``flags`` are ``is_compiled`` for a compiled
        function, ``is_custom`` for one of the user's own.
        """
        state = self.state
        recorder = self.recorder
        repeated = None
        if recorder is None or recorder.queue.runs_own_operation:
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
            find = self._gradients.find_inputs
            opened.graph_inputs = recorder.safely(
                _WATCHING, call, find, recorder, args, kwargs, cell, **flags
            )
        return opened

    def watch_gradients(self, opened: OpenCall, result: Any) -> None:
        """Watch the gradients of a call that has returned."""
        if opened.graph_inputs is not None:
            recorder = opened.recorder
            call = opened.call
            attach = self._gradients.attach
            recorder.safely(_WATCHING, call, attach, recorder, call, opened.graph_inputs, result)

    def end(
        self, opened: OpenCall, result: Any, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """End a call that has returned. Raises ``queue.pending_error``."""
        if not opened.is_repeated:
            opened.recorder.end(opened.call, result, parameters)

    def fail(self, opened: OpenCall, error: BaseException) -> None:
        """End a call that has raised."""
        if not opened.is_repeated:
            opened.recorder.fail(opened.call, error)


class ApiHooks:
    """Records calls of listed APIs, Primitives and compiled functions. For ``flags`` see ``CaptureContext.begin``."""

    def __init__(self, context: CaptureContext, **flags: bool) -> None:
        self._context = context
        self._flags = flags
        counted = context.counted
        #: what a patch of a function calls
        self.enter = self.call if counted is None else counted.counted(self.call, context.state)

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the original that records its outermost calls on each thread."""
        state = self._context.state
        call = self.enter

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if state.in_recorded_call:
                return original(*args, **kwargs)
            state.in_recorded_call = True
            try:
                return call(key, original, args, kwargs)
            finally:
                state.in_recorded_call = False

        try:
            return functools.update_wrapper(wrapper, original)
        except (AttributeError, TypeError):  # a builtin without the usual attributes
            return wrapper

    def call(
        self,
        key: str,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: Sequence[Any] | None = None,
        primitive: Any = None,
    ) -> Any:
        """Run the original and record the call; ``inputs`` are the positional ones where a Primitive's self is none."""
        context = self._context
        inputs = args if inputs is None else tuple(inputs)
        opened = context.begin(key, inputs, kwargs, **self._flags)
        if opened is None:
            return original(*args, **kwargs)
        if primitive is not None and not opened.is_repeated:
            opened.recorder.note_attributes(opened.call, primitive)
        around = context.around_calls
        run = original if around is None else around(opened.call, original, inputs, kwargs)
        try:
            result = run(*args, **kwargs)
            self._synchronize(
                opened.recorder, result
            )  # else reading the result would raise an error of the training
        except BaseException as error:
            context.fail(opened, error)
            raise
        outcome = inputs[0] if key == _CHANGES_FIRST else result
        # a function that returns nothing has changed its first argument: gradients arrive there
        context.watch_gradients(opened, inputs[:1] if outcome is None else outcome)
        self._end(opened, original, args, kwargs, outcome)
        return result

    def _synchronize(self, recorder: StepRecorder, result: Any) -> None:
        recorder.queue.synchronize()

    def _end(
        self,
        opened: OpenCall,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        self._context.end(opened, result)
