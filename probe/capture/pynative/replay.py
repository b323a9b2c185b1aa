# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Logs of the calls inside recomputed Cells.

The calls of the first run are logged; in the second run each is taken from the log, so that its gradients, which only
the second run's graph has, stand under the first run's number.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from probe.recording.call import Call


class ReplayLog:
    """The calls of one run of a recomputed Cell, by key, in order."""

    def __init__(self) -> None:
        self._calls: defaultdict[str, deque[Call]] = defaultdict(deque)

    def add(self, key: str, call: Call) -> None:
        """Log a call of the first run."""
        self._calls[key].append(call)

    def pop(self, key: str) -> Call | None:
        """Return the call of the first run that is repeated now; None where the first run had none."""
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

    def pop(self, cell: Any) -> ReplayLog:
        """Return the newest log, for a second run; an empty one where the first run was not seen."""
        logs = self._logs.get(id(cell))
        return logs.pop() if logs else ReplayLog()

    def clear(self) -> None:
        """Remove all logs: the step is over."""
        self._logs.clear()
