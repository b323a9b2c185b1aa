# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The hot path: records the outermost calls of functions on each thread."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.thread_state import OpenCall
from probe.recording.step_recorder import StepRecorder

#: on Ascend it returns the part that was written, and Python drops that: its outcome is the tensor
_CHANGES_FIRST = "Tensor.__setitem__"


class ApiHooks:
    """Records calls of listed APIs, Primitives and compiled functions. For ``flags`` see ``CaptureContext.begin``."""

    def __init__(self, context: CaptureContext, **flags: bool) -> None:
        self._context, self._flags = context, flags

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the original that records its outermost calls on each thread."""
        state, call = self._context.state, self.call

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
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        inputs: Sequence[Any] | None = None, primitive: Any = None,
    ) -> Any:  # fmt: skip
        """Run the original and record the call.

        ``inputs`` are the positional inputs, where they are not ``args`` (a Primitive's self is none).
        """
        context, inputs = self._context, args if inputs is None else tuple(inputs)
        opened = context.begin(key, inputs, kwargs, **self._flags)
        if opened is None:
            return original(*args, **kwargs)
        if primitive is not None and not opened.is_repeated:
            opened.recorder.note_attributes(opened.call, primitive)
        saved = context.saved_tensors
        run = original if saved is None else saved.around(opened.call, original, inputs, kwargs)
        try:
            result = run(*args, **kwargs)
            self._synchronize(opened.recorder, result)  # else reading the result would raise an error of the training
        except BaseException as error:
            context.fail(opened, error)
            raise
        outcome = inputs[0] if key == _CHANGES_FIRST else result
        # a function that returns nothing has changed its first argument: gradients arrive there
        context.watch_gradients(opened, inputs[:1] if outcome is None else outcome)
        self._end(opened, original, args, kwargs, outcome)
        return result

    def _synchronize(self, recorder: StepRecorder, result: Any) -> None:
        recorder.synchronize()

    def _end(
        self, opened: OpenCall, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        self._context.end(opened, result)
