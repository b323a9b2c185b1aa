# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Per-thread state: the calls that are running, and the logs of recomputed Cells.

The calls of the first run of a recomputed Cell are logged. The second run takes each call from the log. So its
gradients, which only the second run's graph has, get the first run's number.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from probe.capture.autograd.call_graph import GraphInputs
from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder


@dataclass
class OpenCall:
    """A recorded call that is running: of an API, a Primitive, a jit function, a collective or a Cell."""

    recorder: StepRecorder
    call: Call
    is_repeated: bool  # it repeats a call that was recorded earlier, in a recomputed Cell
    cell: Any = None
    #: the places of its inputs in the graph, or None if its gradients are not watched
    graph_inputs: GraphInputs | None = None
    has_parameters: bool = False  # the parameters that the Cell has used are recorded


class ReplayLog:
    """The calls of one run of a recomputed Cell, by key, in order."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, deque[Call | None]] = defaultdict(deque)

    def add(self, key: str, call: Call | None) -> None:
        """Log a call of the first run; None for one of which nothing is recorded."""
        self._calls[key].append(call)

    def pop(self, key: str) -> Call | None:
        """Return the call of the first run that is repeated now; None if nothing of it is recorded."""
        calls = self._calls.get(key)
        return calls.popleft() if calls else None


class ThreadState(threading.local):
    """One per capture; every thread sees its own values."""

    def __init__(self) -> None:
        #: a listed API is running, or the tool itself. Listed APIs that it calls are not recorded.
        self.in_recorded_call = False
        self.micro = cast("str | None", None)  # the number of the micro-batch that a pipeline runs
        self.cells: list[OpenCall] = []  # the Cell calls that are open, outermost first
        self.logs: list[
            ReplayLog
        ] = []  # recomputed Cells that run for the first time; they log the calls inside them
        #: the keys of the listed calls that run while calls are counted, outermost first
        self.census: list[str] = []
        #: recomputed Cells that run again, outermost first: the calls of their first runs
        self.replays: list[ReplayLog] = []

    @property
    def cell(self) -> Call | None:
        """The innermost open Cell call."""
        return self.cells[-1].call if self.cells else None

    def unseen(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a function and record nothing inside it."""
        inside = self.in_recorded_call
        self.in_recorded_call = True
        try:
            return function(*args, **kwargs)
        finally:
            self.in_recorded_call = inside

    def leave(self, depth: int, cell: Any) -> OpenCall | None:
        """Remove and return the open call of a Cell, with the calls inside it that an exception has left open."""
        left = self.cells[depth:]  # ``depth`` is the number of open calls before it
        _forget_frames(left)
        if not left or left[0].cell is not cell:  # the recording began during this call
            return None
        del self.cells[depth:]
        return left[0]

    def forget_cells(self) -> None:
        """Forget all open calls: a new recording begins."""
        _forget_frames(self.cells)
        self.cells.clear()


def _forget_frames(calls: list[OpenCall]) -> None:
    """Release the frames of calls, as gradients hold the calls and a frame holds all tensors of its function."""
    for opened in calls:
        opened.call.frame = None
