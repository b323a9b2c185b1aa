# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Communication between ranks: inputs before the call, outputs after the training has waited for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.comm_handles import CommHandleTracker
from probe.capture.pynative.context import CaptureContext
from probe.capture.pynative.thread_state import OpenCall
from probe.naming import COLLECTIVE
from probe.recording.step_recorder import StepRecorder


def is_collective(key: str) -> bool:
    """Return whether calls with this key communicate.

    >>> is_collective("MintDistributed.all_reduce"), is_collective("Mint.add")
    (True, False)
    """
    return key.partition(".")[0] in COLLECTIVE


class CollectiveHooks(ApiHooks):
    """Records calls that communicate.

    In-place collectives return no tensor; their output is their arguments after the call. The output of an asynchronous
    call is recorded when the training waits for its handle. The tool never waits for a handle itself.
    """

    def __init__(self, context: CaptureContext, handles: CommHandleTracker) -> None:
        super().__init__(context)
        self._handles = handles  # follows the handles of asynchronous communication

    def wrap(self, key: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper of the original; see ``ApiHooks``."""
        wrapper = super().wrap(key, original)
        return _EqualToOriginal(wrapper, original) if key.endswith((".isend", ".irecv")) else wrapper

    def _synchronize(self, recorder: StepRecorder, result: Any) -> None:
        if not self._handles.find(result):
            recorder.synchronize()

    def _end(
        self, opened: OpenCall, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        with opened.recorder.guard("reading the ranks of a group", opened.call):
            opened.call.parts.update(_members(opened.call.key, original, args, kwargs))
        outcome = result if self._handles.has_tensors(result) else (*args, *kwargs.values())
        handles = self._handles.find(result)
        if not handles:
            self._context.end(opened, outcome)
        elif not opened.is_repeated:
            self._handles.follow(opened.recorder, handles, opened.call, outcome)


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


def _members(key: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the ranks of the group of a call, and the rank that it sends to or receives from."""
    from mindspore.communication import GlobalComm, get_process_group_ranks

    if not GlobalComm.INITED:
        return {}
    bound = inspect.signature(original).bind(*args, **kwargs)
    bound.apply_defaults()
    group, *peers = (bound.arguments.get(name) for name in ("group", "src", "dst"))
    # texts, as msprobe's compare fails on numbers in an entry
    found: dict[str, Any] = {
        "group_ranks": [str(rank) for rank in get_process_group_ranks(group or GlobalComm.WORLD_COMM_GROUP)]
    }
    if key.endswith(("send", "recv")):
        found["peer"] = str(next(peer for peer in peers if peer is not None))
    return found
