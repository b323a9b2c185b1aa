# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The states of a session, how they decide whether a method runs, and the steps that it counts."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from probe.config.settings import Settings
from probe.errors import UsageError
from probe.recording.step_recorder import StepRecorder
from probe.store.dump_writer import DumpWriter


class State(enum.Enum):
    """The states of a session."""

    #: no step is open
    IDLE = "idle"
    #: a step is open, hooks are installed, calls are recorded
    RECORDING = "recording"
    #: a step is open, hooks are removed: between stop() and step()
    PAUSED = "paused"
    #: a forked child, or msrun's scheduler: nothing is ever recorded
    DETACHED = "detached"
    #: close() was called
    CLOSED = "closed"


Method = TypeVar("Method", bound=Callable[..., Any])


def serialized(method: Method) -> Method:
    """Serialize calls of a method. In a detached process it does nothing; after ``close`` it raises."""

    @functools.wraps(method)
    def run(self: Any, *args: Any) -> Any:
        with self._lock:
            if self.state is State.CLOSED:
                raise UsageError("this PrecisionDebugger is closed. Make a new one: PrecisionDebugger(config_path=...)")
            return None if self.state is State.DETACHED else method(self, *args)

    return cast(Method, run)


class OpenStep:
    """The dump of one step: its recorder and its files, and then those of its compiled Cells.

    Attributes:
        trees: all of them.
        recorder, writer: those of the calls in PyNative mode, or of the graph in GRAPH_MODE.
    """

    def __init__(self, trees: Sequence[tuple[StepRecorder, DumpWriter]]) -> None:
        self.trees, (self.recorder, self.writer) = trees, trees[0]
        if len(trees) > 1:
            self.recorder.companion = trees[1][0]

    def write(self, end_of_step: bool) -> bool:
        """Write the documents; return whether anything was new. ``end_of_step`` is False in the middle of a call."""
        is_new = False
        for recorder, writer in self.trees:
            with recorder.queue.lock:
                is_new |= recorder.task.should_write() and writer.write_documents(end_of_step)
        return is_new


class StepWindow:
    """Counts steps. The number of a step is the loop count plus the init step.

    Attributes:
        state: IDLE, RECORDING or PAUSED.
        open_step: the dump of the step that is open, or None.
    """

    def __init__(self) -> None:
        self._loop, self.state = 0, State.IDLE
        self.open_step: OpenStep | None = None
        self.init_step = -1  # the number that ``begin_at`` gave, or -1

    @property
    def step(self) -> int:
        """The number of the current step."""
        return max(self.init_step, 0) + self._loop

    def advance(self) -> None:
        """Go on to the next step."""
        self._loop += 1

    def begin_at(self, step: int) -> None:
        """Begin to count at ``step``."""
        self._loop, self.init_step = 0, step

    def wants(self, settings: Settings, rank: int | None) -> bool:
        """Return whether the current step of this rank is to be recorded; without ranks there is only one."""
        return wants_rank(settings, rank) and (not settings.step or self.step in settings.step)


def wants_rank(settings: Settings, rank: int | None) -> bool:
    """Return whether any step of this rank is to be recorded."""
    return settings.dump_enable and (not settings.rank or rank is None or rank in settings.rank)
