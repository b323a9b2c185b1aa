# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Recompute runs a forward a second time inside the backward: the same calls again, not new ones.

The calls of the first run are logged; in the second run each is taken from the log, so that its gradients, which only
the second run's graph has, stand under the first run's number.
"""

from __future__ import annotations

import functools
import importlib
from collections import defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.capture.patches import Patch, PatchSet

if TYPE_CHECKING:
    from probe.capture.pynative.pynative_capture import PyNativeCapture
    from probe.recording.call import Call

MODULE = "mindspore.common.recompute"


class ReplayLog:
    """The calls of one run of a recomputed Cell, by key, in order."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, deque[Call]] = defaultdict(deque)

    def add(self, key: str, call: Call) -> None:
        """Note a call of the first run."""
        self._calls[key].append(call)

    def take(self, key: str) -> Call | None:
        """Return the call of the first run that is repeated now; None for what the first run did not do."""
        calls = self._calls.get(key)
        return calls.popleft() if calls else None


class ReplayLogs:
    """The logs of every recomputed Cell in this step, the newest last, as MindSpore keeps their arguments."""

    def __init__(self) -> None:
        self._logs: defaultdict[int, list[ReplayLog]] = defaultdict(list)

    def new(self, cell: Any) -> ReplayLog:
        """Begin a log for a first run."""
        log = ReplayLog()
        self._logs[id(cell)].append(log)
        return log

    def last(self, cell: Any) -> ReplayLog:
        """Take away the newest log, for a second run; an empty one where the first run was not seen."""
        logs = self._logs.get(id(cell))
        return logs.pop() if logs else ReplayLog()

    def clear(self) -> None:
        """Forget all: the step is over."""
        self._logs.clear()


def patches(collection: PyNativeCapture) -> PatchSet:
    """Return the patches of MindSpore's two ways to recompute."""
    module = importlib.import_module(MODULE)
    found = []
    for owner, name, wrap in (
        ("_RecomputeCell", "construct", _first_run),
        ("_RecomputeCell", "bprop", _second_run),
        # without reentry, since 2.8: the first run has the graph, the second only fills in its values
        ("_RecomputationHook", "__enter__", _unseen_begin),
        ("_RecomputationHook", "__exit__", _unseen_end),
    ):
        if hasattr(getattr(module, owner, None), name):
            found.append(Patch(getattr(module, owner), name, functools.partial(wrap, collection)))
    return PatchSet(found)


def _first_run(collection: PyNativeCapture, original: Callable[..., Any]) -> Callable[..., Any]:
    state, logs = collection.state, collection.logs

    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        state.logs.append(logs.new(self))
        try:
            return original(self, *args, **kwargs)
        finally:
            state.logs.pop()

    return functools.update_wrapper(construct, original)


def _second_run(collection: PyNativeCapture, original: Callable[..., Any]) -> Callable[..., Any]:
    def bprop(self: Any, *args: Any, **kwargs: Any) -> Any:
        with collection.state.replaying(collection.logs.last(self)):
            return original(self, *args, **kwargs)

    return functools.update_wrapper(bprop, original)


def _unseen_begin(collection: PyNativeCapture, original: Callable[..., Any]) -> Callable[..., Any]:
    state = collection.state

    def __enter__(self: Any) -> Any:
        state.replayed.append(state.replay)
        state.replay = ReplayLog()
        return original(self)

    return functools.update_wrapper(__enter__, original)


def _unseen_end(collection: PyNativeCapture, original: Callable[..., Any]) -> Callable[..., Any]:
    state = collection.state

    def __exit__(self: Any, *error: Any) -> Any:
        state.replay = state.replayed.pop() if state.replayed else None
        return original(self, *error)

    return functools.update_wrapper(__exit__, original)
