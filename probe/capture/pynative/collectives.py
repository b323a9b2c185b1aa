# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Communication between ranks: inputs before the call, outputs as soon as the training has waited for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.comm_handles import CommHandleTracker
from probe.capture.pynative.context import CaptureContext
from probe.entry import Kind
from probe.naming import COLLECTIVE


def is_collective(key: str) -> bool:
    """Return whether entries of this name are of communication.

    >>> is_collective("MintDistributed.all_reduce"), is_collective("Mint.add")
    (True, False)
    """
    return key.partition(".")[0] in COLLECTIVE


class CollectiveHooks(ApiHooks):
    """Records calls that communicate.

    In-place collectives return no tensor; their output is their arguments after the call. The output of an asynchronous
    one is recorded when the training waits for its handle; nobody waits in its place.

    Args:
        context: shared by the hooks of the capture.
        handles: follows the handles of asynchronous communication.
    """

    def __init__(self, context: CaptureContext, handles: CommHandleTracker) -> None:
        super().__init__(context)
        self._handles = handles

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return the stand-in of the original; see ``ApiHooks``."""
        wrapper = super().wrap(key, original)
        return _EqualToOriginal(wrapper, original) if key.endswith((".isend", ".irecv")) else wrapper

    def call(
        self, key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], skip_args: int = 0
    ) -> Any:
        """Run the original and record the call; see ``ApiHooks``."""
        context = self._context
        recorder = context.recorder
        if recorder is None:
            return original(*args, **kwargs)
        opened = context.begin(recorder, Kind.API, key, args, kwargs)
        if opened is None:
            return original(*args, **kwargs)
        try:
            result = original(*args, **kwargs)
            handles = self._handles.find(result)
            if not handles:
                recorder.synchronize()
        except BaseException as error:
            context.fail(recorder, opened, error)
            raise
        context.watch_gradients(recorder, opened, args[:1] if result is None else result)
        outcome = result if self._handles.has_tensors(result) else (*args, *kwargs.values())
        if not handles:
            context.end(recorder, opened, outcome)
        elif not opened.is_repeated and opened.call.recorded:
            self._handles.follow(recorder, handles, opened.call, outcome)
        return result


class _EqualToOriginal:
    """Compares equal to the original, because P2POp accepts only mint's isend and irecv."""

    def __init__(self, wrapper: Callable[..., Any], original: Callable[..., Any]) -> None:
        functools.update_wrapper(self, original)
        self._wrapper, self._original = wrapper, original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapper(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)
