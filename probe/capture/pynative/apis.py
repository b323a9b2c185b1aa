# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The hot path: one closure per listed API, which records its outermost calls on each thread."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from probe.capture.autograd.gradient_hooks import GraphInputs
    from probe.capture.pynative.pynative_capture import PyNativeCapture
    from probe.recording.call import Call
    from probe.recording.step_recorder import StepRecorder

    #: a call that has begun, where its inputs stood in the graph, and whether it only repeats another
    _Begun = tuple[Call, Optional[GraphInputs], bool]


class ApiHooks:
    """Records calls of functions: listed APIs, Primitives, compiled functions."""

    def __init__(self, collection: PyNativeCapture) -> None:
        self._collection = collection
        self._state = collection.state

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does what the original does and records its outermost calls on each thread."""
        state, call = self._state, self.call

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if state.inside:
                return original(*args, **kwargs)
            state.inside = True
            try:
                return call(key, original, args, kwargs)
            finally:
                state.inside = False

        try:
            return functools.update_wrapper(wrapper, original)
        except (AttributeError, TypeError):  # a builtin without the usual attributes
            return wrapper

    def call(
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], visible: int = 0
    ) -> Any:
        """Run the original and record the call.

        Args:
            key: its entries' names without number and direction.
            original: what runs.
            args: its positional arguments.
            kwargs: its keyword arguments.
            visible: how many leading arguments are no inputs (a Primitive's self).
        """
        recorder = self._collection.recorder
        if recorder is None:
            return original(*args, **kwargs)
        begun = self._begin(recorder, key, args[visible:], kwargs)
        try:
            result = original(*args, **kwargs)
            if begun is not None:
                recorder.settle()  # or an error of the training would come up when we look at the result
        except BaseException as error:
            if begun is not None:
                self._raised(recorder, begun, error)
            raise
        if begun is not None:
            self._attach(recorder, begun, args[visible:], result)
            self._finish(recorder, begun, result)
            if recorder.theirs is not None:
                recorder.settle()
        return result

    def _begin(self, recorder: StepRecorder, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Begun | None:
        try:
            call, repeated = self._state.begin(key, recorder.call)
            if call is None or not (repeated or recorder.opens(call) or recorder.follows(call)):
                return None
        except Exception as error:
            recorder.trouble("recording a call", error, key)
            return None
        recorder.settle()
        try:
            if not repeated:
                recorder.begins(call, args, kwargs, sys._getframe(2))
        except Exception as error:
            recorder.failed(call, "recording a call", error)
        try:
            plan = self._collection.gradients.plan(recorder, args, kwargs) if recorder.follows(call) else None
        except Exception as error:
            recorder.failed(call, "watching the gradients of a call", error)
            plan = None
        return call, plan, repeated

    def _attach(self, recorder: StepRecorder, begun: _Begun, args: tuple[Any, ...], result: Any) -> None:
        call, plan, _ = begun
        try:
            if plan is not None:
                # what returns nothing has changed its first argument: that is where gradients arrive
                self._collection.gradients.attach(recorder, call, plan, args[:1] if result is None else result)
        except Exception as error:
            recorder.failed(call, "watching the gradients of a call", error)

    def _finish(self, recorder: StepRecorder, begun: _Begun, result: Any) -> None:
        call, _, repeated = begun
        try:
            if not repeated:
                recorder.ends(call, result)
        except Exception as error:
            recorder.failed(call, "recording a result", error)

    def _raised(self, recorder: StepRecorder, begun: _Begun, error: BaseException) -> None:
        call, _, repeated = begun
        try:
            if not repeated:
                recorder.raised(call, error)
        except Exception as own:
            recorder.failed(call, "recording an exception", own)
