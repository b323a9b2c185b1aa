# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""What each thread of the training is in the middle of."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probe.capture.autograd.backward_entry import BackwardEntry
    from probe.capture.autograd.gradient_hooks import GraphInputs
    from probe.capture.pynative.recompute import ReplayLog
    from probe.recording.call import Call


@dataclass
class OpenCall:
    """A Cell that runs, its call, and where the inputs of the call stood in the graph."""

    cell: Any
    call: Call
    repeated: bool
    plan: GraphInputs | None = None


class ThreadState(threading.local):
    """One per collection; every thread sees its own values.

    Attributes:
        inside: a listed API is running, or the tool itself: listed APIs called now are not recorded.
        cells: the Cell calls that are open, outermost first.
        open: backward entries that have begun, the next to end last.
        logs: recomputed Cells that run for the first time; they note the calls inside them.
        replay: a recomputed Cell runs again: these are the calls of its first run.
        replayed: what replay was around that run.
    """

    def __init__(self, all_open: list[list[tuple[int, int, BackwardEntry]]]) -> None:
        self.inside = False
        self.cells: list[OpenCall] = []
        self.open: list[tuple[int, int, BackwardEntry]] = []
        self.logs: list[ReplayLog] = []
        self.replay: ReplayLog | None = None
        self.replayed: list[ReplayLog | None] = []
        all_open.append(self.open)

    @property
    def cell(self) -> Call | None:
        """The innermost open Cell call."""
        return self.cells[-1].call if self.cells else None

    def begin(self, key: str, new: Callable[[str, Call | None], Call]) -> tuple[Call | None, bool]:
        """Return the call that begins now, and whether it is the repetition of one that was recorded before.

        Args:
            key: its entries' names without number and direction.
            new: makes a call that is none.
        """
        repeated = self.replay is not None
        call = new(key, self.cell) if self.replay is None else self.replay.take(key)
        if call is not None:
            for log in self.logs:
                log.add(key, call)
        return call, repeated

    @contextlib.contextmanager
    def replaying(self, log: ReplayLog) -> Iterator[None]:
        """Take every call from a log for as long as a recomputed Cell runs again."""
        self.replayed.append(self.replay)
        self.replay = log
        try:
            yield
        finally:
            self.replay = self.replayed.pop()

    def leave(self, cell: Any) -> OpenCall | None:
        """Take away the innermost open call of a Cell, and what an exception has left open inside it."""
        for place in range(len(self.cells) - 1, -1, -1):
            if self.cells[place].cell is cell:
                opened = self.cells[place]
                del self.cells[place:]
                return opened
        return None
