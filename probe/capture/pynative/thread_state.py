# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Per-thread state."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from probe.capture.pynative.open_call import OpenCall
from probe.capture.pynative.replay import ReplayLog
from probe.recording.call import Call


class ThreadState(threading.local):
    """One per capture; every thread sees its own values.

    Attributes:
        in_recorded_call: a listed API is running, or the tool itself: listed APIs called now are not recorded.
        cells: the Cell calls that are open, outermost first.
        logs: recomputed Cells that run for the first time; they log the calls inside them.
        replay: a recomputed Cell runs again: the calls of its first run.
        replay_stack: the replays around that run.
    """

    def __init__(self) -> None:
        self.in_recorded_call = False
        self.cells: list[OpenCall] = []
        self.logs: list[ReplayLog] = []
        self.replay: ReplayLog | None = None
        self.replay_stack: list[ReplayLog | None] = []

    @property
    def cell(self) -> Call | None:
        """The innermost open Cell call."""
        return self.cells[-1].call if self.cells else None

    @contextlib.contextmanager
    def replaying(self, log: ReplayLog) -> Iterator[None]:
        """Take every call from a log while a recomputed Cell runs again."""
        self.replay_stack.append(self.replay)
        self.replay = log
        try:
            yield
        finally:
            self.replay = self.replay_stack.pop()

    def leave(self, depth: int, cell: Any) -> OpenCall | None:
        """Remove the open call of a Cell, and the calls inside it that an exception has left open.

        Args:
            depth: the number of open calls before it.
            cell: the Cell.
        """
        opened = self.cells[depth] if depth < len(self.cells) else None
        if opened is None or opened.cell is not cell:  # the recording began in the middle of this call
            return None
        del self.cells[depth:]
        return opened
