# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A recording, which a session begins and ends with its steps; the states of a session, and what both share."""

from __future__ import annotations

import enum
import functools
import logging
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, cast

from probe.capture.backend import Backends
from probe.capture.kernel.kernel_dump import KernelDump
from probe.capture.pynative.cells import are_others
from probe.config.settings import Settings
from probe.errors import ProbeError, UsageError
from probe.naming import ranges
from probe.private_names import installed_parts
from probe.process.rank import RankResolver, has_siblings
from probe.process.signals import SigtermHandler
from probe.recording.step_recorder import StepRecorder
from probe.series.file import last_step
from probe.snapshot.snapshot import Snapshot
from probe.store import file_names
from probe.store.arrays import DumpWriter
from probe.store.run_folders import RunFolders, aside
from probe.tasks.nan_check import LookedAt

Method = TypeVar("Method", bound=Callable[..., Any])
_log = logging.getLogger("probe")


class State(enum.Enum):
    """The states of a session."""

    IDLE = "idle"  # no step is open
    RECORDING = "recording"  # a step is open, hooks are installed, calls are recorded
    PAUSED = "paused"  # a step is open, hooks are removed: between stop() and step()
    DETACHED = "detached"  # a forked child, or msrun's scheduler: nothing is ever recorded
    CLOSED = "closed"  # close() was called


class Busy:
    """Whether a call of a session runs. A signal may come in its middle: the end of the process waits for its end."""

    def __init__(self) -> None:
        self._depth = 0
        self._waiting: Callable[[], None] | None = None
        #: seconds of processor time: at the begin of the call that runs, and of all calls that have ended
        self._began = 0.0
        self._seconds = 0.0

    def __enter__(self) -> None:
        if not self._depth:
            self._began = time.thread_time()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._seconds += time.thread_time() - self._began
        waiting = self._waiting
        if waiting is not None and not self._depth:
            self._waiting = None
            waiting()

    def wait(self, call: Callable[[], None]) -> bool:
        """Return whether no call runs; else call the function when it has ended."""
        if self._depth:
            self._waiting = call
        return not self._depth

    def seconds(self) -> float:
        """Return the seconds of processor time of all calls so far. Waits for the training are not in it."""
        running = time.thread_time() - self._began if self._depth else 0.0
        return self._seconds + running


def serialized(method: Method) -> Method:
    """Serialize calls of a method. In a detached process it does nothing; after ``close`` it raises."""

    @functools.wraps(method)
    def run(self: Any, *args: Any) -> Any:
        with self._lock, self.busy:
            if self.state is State.CLOSED:
                raise UsageError(
                    "this PrecisionDebugger is closed. Make a new one: PrecisionDebugger(config_path=...)"
                )
            return None if self.state is State.DETACHED else method(self, *args)

    return cast(Method, run)


class OpenStep:
    """The dump of one step: its recorder and its files, and then those of its compiled Cells."""

    def __init__(self, trees: Sequence[tuple[StepRecorder, DumpWriter]]) -> None:
        #: all of them; and those of the calls in PyNative mode, or of the graph in GRAPH_MODE
        self.trees = trees
        (self.recorder, self.writer) = trees[0]
        if len(trees) > 1:
            self.recorder.companion = trees[1][0]

    def write(self, end_of_step: bool) -> bool:
        """Write the documents; return whether anything was new. ``end_of_step`` is False in the middle of a call."""
        is_new = False
        for recorder, writer in self.trees:
            with recorder.queue.lock:
                is_new |= recorder.task.should_write() and writer.documents.write(end_of_step)
        return is_new


class StepWindow:
    """Counts steps. The number of a step is the loop count plus the init step."""

    def __init__(self) -> None:
        self._loop = 0
        self.state = State.IDLE  # or RECORDING or PAUSED
        self.open_step: OpenStep | None = None  # the dump of the step that is open
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
        self._loop = 0
        self.init_step = step

    def wants(self, settings: Settings, rank: int | None) -> bool:
        """Return whether the current step of this rank is to be recorded; without ranks there is only one."""
        return wants_rank(settings, rank) and (not settings.step or self.step in settings.step)


def wants_rank(settings: Settings, rank: int | None) -> bool:
    """Return whether any step of this rank is to be recorded."""
    return settings.dump_enable and (not settings.rank or rank is None or rank in settings.rank)


def tell(text: str) -> None:
    """Log the line at the end of a run; print it where nobody listens to the log."""
    if _log.hasHandlers() and _log.isEnabledFor(logging.INFO):
        _log.info("%s", text)
    else:
        print(f"probe: {text}", file=sys.stderr)


def is_notebook() -> bool:
    """Return whether the program is a notebook: it has no end at which something could be said."""
    return "ipykernel" in sys.modules


def _count(number: int, word: str, several: str = "") -> str:
    return f"{number:,} {word if number == 1 else several or word + 's'}"


class RunReport:
    """Collects what one session has seen."""

    def __init__(self) -> None:
        self.starts = self.steps = 0  # the numbers of calls of start() and step()
        self.is_reached = False  # start() was called in a step of the setting step
        self.has_model = False  # start() was given a model
        self.is_made_again = False  # the program has made its debugger again, as a notebook does
        self.said = False  # the line was said, or is not needed
        self._said_of = 0  # the steps that it told
        self._last_line = ""  # the line of a recording's own that was said
        self._is_over = False  # no step follows
        self.token_range: object = None  # the last one that start() was given
        self._folders: dict[str, int] = {}
        self._looks: list[LookedAt] = []  # the steps of task nan_check
        self._lost: list[int] = []
        self._has_lost = False

    def add_step(self, step: int, folder: str, is_written: bool) -> None:
        """Count a recorded step, and note whether its documents are on disk."""
        if is_written:
            self._folders[folder] = self._folders.get(folder, 0) + 1
            return
        self._lost.append(step)
        self._has_lost = True
        if len(self._lost) == 1:
            _log.warning("step %d has no documents: they could not be written", step)

    def add_look(self, found: LookedAt) -> None:
        """Count a step of task nan_check."""
        if found.forward or found.backward:
            self._looks.append(found)

    def say(self, settings: Settings, rank: int | None, last_line: str = "") -> None:
        """Log or print the line, once per process, on rank 0 only. Steps without documents are said on each rank.

        ``last_line`` is that of a recording which has one of its own.
        """
        if self._lost:
            _log.warning(
                "these steps have no documents, they could not be written: %s",
                ", ".join(ranges(self._lost)),
            )
            self._lost = []
        if self.said or settings.quiet or rank:
            return
        self.said = True
        self._said_of = self._recorded
        if last_line:
            self._last_line = last_line
            tell(last_line)
            return
        for folder, steps in self._folders.items():
            command = "nan" if settings.task == "nan_check" else "show"
            text = f"{_count(steps, 'step')} in {folder}; look with: probe {command} {shlex.quote(folder)}"
            if not self.steps:
                text += " (step() was never called: everything counts as one step)"
            tell(text)
        if self._looks and not self._folders:
            tell(self._looked_at())
        elif not self._folders:
            _log.warning("nothing was recorded: %s", self._reason(settings, rank))

    @property
    def _recorded(self) -> int:
        return sum(self._folders.values()) + len(self._looks)

    def end(self, last_line: str) -> None:
        """Let the line be said again if it was said before the last steps, as in a notebook."""
        self._is_over = True
        is_other = bool(self._last_line) and last_line != self._last_line
        if is_other or 0 < self._said_of < self._recorded:
            self.said = False

    def _looked_at(self) -> str:
        """Return the line of task nan_check that found nothing: it says how much was looked at."""
        steps = _count(len(self._looks), "step")
        forward = sum(look.forward for look in self._looks)
        backward = sum(look.backward for look in self._looks)
        entries = f"{_count(forward, 'forward entry', 'forward entries')} and {backward} backward"
        if any(look.saw_nonfinite for look in self._looks):
            found = (
                "no call turned finite inputs into NaN/Inf, but there was NaN/Inf: "
                "a mask of -inf, or see the warnings"
            )
        else:
            found = "no NaN/Inf"
        later = (
            ". NaN/Inf in a later step is told at once"
            if is_notebook() and not self._is_over
            else ""
        )
        return f"{steps} looked at, {entries}: {found}{later}"

    def _reason(self, settings: Settings, rank: int | None) -> str:
        has_no_cells = settings.level == "L0" and not (
            settings.scope or settings.list or settings.exclude
        )
        if settings.level == "debug":
            return "save() was never called in a step of the setting step"
        reasons = {
            "the documents could not be written": self._has_lost,
            "start() was never called": not self.starts,
            '"dump_enable" is false': not settings.dump_enable,
            f"rank {rank} is not in the setting rank": settings.rank
            and rank is not None
            and rank not in settings.rank,
            "step() was never called, and step 0 is not in the setting step": not (
                self.steps or self.is_reached
            ),
            f"the training had {self.steps} steps, and none is in the setting step": not self.is_reached,
            f"the model did not reach the forwards of token_range {self.token_range}": self.token_range
            is not None,
            "the model has no Cells below it; record level L1 or mix, or put it into a Cell": has_no_cells,
            "no listed API was called; start(model) records the Primitives of Cells too": not self.has_model,
        }
        found = [reason for reason, holds in reasons.items() if holds]
        return (
            found[0]
            if found
            else "no call was made between start() and stop(), or scope and list matched none"
        )


class SessionParts:
    """The parts that a session and its recording share.

    ``sigterm`` saves the dump when SIGTERM comes. ``before`` has those of the session that this one replaces. If it
    ``continues`` that session, which is not closed, this one goes on with its report, snapshot and functions.
    """

    def __init__(
        self, root: str, sigterm: SigtermHandler, before: SessionParts | None, continues: bool
    ) -> None:
        self.folders: RunFolders = before.folders if before else RunFolders(last_step)
        #: the kernel dump of this process, or None: MindSpore reads its dump configuration once
        self.kernels: KernelDump | None = before.kernels if before else None
        self.backends: Backends = Backends(before.backends if before else None, continues)
        self.report: RunReport = before.report if before and continues else RunReport()
        self.snapshot: Snapshot = before.snapshot if before and continues else Snapshot()
        self.ranks = RankResolver()
        self.window = StepWindow()
        self.busy = Busy()
        self.sigterm = sigterm
        self.models: Any = None  # those that start() was given last
        self.recorded: Any = None  # those of the last start that has recorded
        self.logged: set[str] = set()  # messages that were logged already
        self.root = root  # the folder of the run: ``dump_path``, or one beside it
        self.last_folder = ""  # the rank folder of the last step with statistics

    def choose_root(self, settings: Settings) -> bool:
        """Choose the folder that this run writes, as ``root``; return whether it is chosen just now.

        It is ``dump_path``, or one beside it where another run is in ``dump_path``: one warning says so. Raise
        UsageError where that is not allowed, or another process writes there.
        """
        path = settings.dump_path
        window = self.window
        name = file_names.rank_name(self.ranks.rank())
        self.root, is_new = self.folders.root(
            path,
            name,
            window.step,
            window.init_step,
            settings.overwrite,
            steps_aside=not has_siblings(),
        )
        if is_new and self.root != path:
            _log.warning("%s", aside(path, self.root))
        return is_new

    def has_other_model(self) -> bool:
        """Return whether the model shares no Cell with that of the start before. A warning tells how to give both."""
        before = self.recorded
        self.recorded = self.models
        if (
            before is None
            or self.models is None
            or before is self.models
            or not are_others(self.models, before)
        ):
            return False
        self.log_once(
            "start(): this model is another one than before. "
            "If one training has several models, give all of them at once: start([first, second])"
        )
        return True

    def unless_disabled(self, doing: str, action: Callable[[], None]) -> None:
        """Run an action. An error of ours is logged once; the training continues without a dump of this step."""
        try:
            action()
        except ProbeError:
            raise
        except Exception as error:
            kind = f"{doing} {type(error).__name__}"
            if kind not in self.logged:
                self.logged.add(kind)
                _log.error(
                    "%s failed and is off for this step; training continues: %s",
                    doing,
                    error,
                    exc_info=error,
                )
        finally:
            installed_parts().tell(_log.warning)

    def log_once(self, text: str) -> None:
        """Log a warning, unless it was logged already."""
        if text not in self.logged:
            self.logged.add(text)
            _log.warning("%s", text)


class Recording:
    """The work between start and stop, one call after the other. This base class records nothing."""

    unchangeable: ClassVar[str] = ""  # why an edit of the settings file has no effect, or ""
    may_renumber: ClassVar[bool] = False  # set_init_step() may come between start and stop

    def __init__(self, settings: Settings, parts: SessionParts) -> None:
        self.settings = settings
        self.parts = parts

    def with_settings(self, settings: Settings) -> Recording:
        """Return what goes on under other settings. This object can take over again if they cannot be applied."""
        return self

    def start(self, token_range: Any) -> None:
        """Begin to record, if the settings select this step and rank."""

    def stop(self) -> None:
        """Record no more; a backward that may follow still adds its entries. May raise an error of the training."""

    def end_step(self, is_last: bool = False) -> None:
        """End the step. After the last one, the recording is over. May raise an error of the training."""

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; return the model for start(), or None where start() was given one."""

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value under a name."""

    def log(self, name: Any, number: Any) -> None:
        """Add a number to the row of a step."""

    def record_next(self, steps: int) -> None:
        """Record so many of the next steps as a whole, as after an alarm of the monitor."""

    def held_bytes(self) -> int | None:
        """Return the bytes of memory that the last step has held besides; None where nothing is held."""
        return None

    def set_alarm_function(self, function: Any) -> None:
        """Set the function that is called for each alarm."""

    def last_line(self) -> str:
        """Return the line at the end of the run; "" where the report of the session has it."""
        return ""

    def close(self) -> None:
        """Release the files, after the last step."""

    def detach(self) -> None:
        """Release everything in a forked child: the files are the parent's."""
