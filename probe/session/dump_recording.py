# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Records the calls of each step with their values, in a folder that no other process writes."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from probe.capture.backend import CaptureBackend
from probe.capture.pynative.cells import iter_cells, with_loss
from probe.config.settings import Settings
from probe.entry import Entry
from probe.errors import ProbeError, UsageError
from probe.layers.layer import layers
from probe.measure.device import Measurers
from probe.measure.host import ExtremaMeasurer
from probe.measure.storage import StorageNotes
from probe.process.rank import run_header
from probe.recording.call import GradientUse, Task
from probe.recording.call_stacks import CallStacks
from probe.recording.measurement_queue import MeasurementQueue
from probe.recording.step_recorder import NameFilter, StepRecorder
from probe.session.recording import (
    OpenStep,
    Recording,
    SessionParts,
    State,
    is_notebook,
    wants_rank,
)
from probe.store import file_names
from probe.store.arrays import ArrayWriter, DiskBudget, DumpWriter
from probe.store.documents import JsonDocuments
from probe.store.error_log import ErrorLog
from probe.tasks.nan_check import FirstNonFinite, NanCheck
from probe.tasks.values import DebugTask, ValuesTask

_log = logging.getLogger("probe")
Queues = Callable[
    [DumpWriter], Callable[..., MeasurementQueue]
]  # writer of a step -> what makes its queue


class DumpRecording(Recording):
    """Makes a dump; see ``Recording``. Its steps share stacks, measurers and disk budget."""

    def __init__(
        self, settings: Settings, parts: SessionParts, queues: Queues | None = None
    ) -> None:
        super().__init__(settings, parts)
        self.queues: Queues = queues or (lambda writer: MeasurementQueue)
        self._is_finished = False  # task nan_check has reached its goal
        self._hits = 0  # its findings
        self._stacks = CallStacks()
        self._budget = DiskBudget(settings.max_disk)
        self._logged_kinds: set[tuple[str, str]] = set()
        self._measurers: dict[Callable[[Settings], Measurers], Measurers] = {}

    @property
    def _capture(self) -> CaptureBackend | None:
        return self.parts.backends.current

    def with_settings(self, settings: Settings) -> DumpRecording:
        """Return what goes on under other settings; see ``Recording``."""
        found = copy.copy(self)
        found.settings = settings
        found._is_finished = False
        found._measurers = {}
        found._hits = 0
        self.parts.backends.current = None
        return found

    # -- the steps --------------------------------------------------------------------------------------------------

    def start(self, token_range: Any) -> None:
        """Begin to record; see ``Recording``."""
        settings = self.settings
        parts = self.parts
        report = self.parts.report
        step = self.parts.window.step
        if self._is_finished:
            parts.log_once(
                "nan_check: max_hits is reached, nothing more is watched. A new run watches again"
            )
        if settings.level == "debug" or self._is_finished:
            return
        if parts.models is None and (settings.cells or token_range is not None):
            needs = (
                "token_range"
                if token_range is not None
                else f'level "{settings.level}" records Cells and'
            )
            raise UsageError(f"start(): {needs} needs the model: debugger.start(model)")
        if wants_rank(settings, parts.ranks.rank()):
            parts.backends.prepare(settings, parts.models, token_range)
        wanted = settings.step
        report.is_reached |= settings.dump_enable and (not wanted or step in wanted)
        runs_again = report.is_made_again or is_notebook()
        if runs_again and isinstance(wanted, frozenset) and wanted and step > max(wanted):
            parts.log_once(
                f"the setting step ends with {max(wanted)}: no more is recorded. set_init_step(n) goes back"
            )
        parts.unless_disabled("recording", lambda: self._begin(token_range))

    def _begin(self, token_range: Any) -> None:
        opened = self._open_step()
        models = self.parts.models
        window = self.parts.window
        if opened is None or self._capture is None:
            return
        window.state = State.RECORDING
        with contextlib.ExitStack() as undo:
            undo.callback(self._capture.remove)
            undo.callback(setattr, window, "state", State.PAUSED)
            if models is not None:
                self._capture.watch(models)
            self._begin_snapshot(opened, self._capture)
            first = models[0] if isinstance(models, (list, tuple)) else models
            tokens = token_range and (int(token_range[0]), int(token_range[1]))
            self._capture.install(opened.recorder, first, tokens)
            self.parts.sigterm.install()
            undo.pop_all()

    def _open_step(self) -> OpenStep | None:
        """Return the dump of this step; None if the step is not selected, or cannot be recorded."""
        window = self.parts.window
        if not window.wants(self.settings, self.parts.ranks.rank()):
            return None
        capture = self.parts.backends.select(self.settings)
        if window.open_step is None:
            window.open_step = self._new_step(capture)
        return window.open_step

    def stop(self) -> None:
        """Record no more, and write the documents; see ``Recording``."""
        window = self.parts.window
        capture = self._capture
        if window.state is not State.RECORDING:
            return
        window.state = State.PAUSED
        opened = window.open_step
        if opened is None or capture is None:
            return
        recorder = opened.recorder
        try:
            recorder.queue.flush()  # may raise a pending error of the training
        finally:
            with recorder.guard("restoring the SIGTERM handler"):
                self.parts.sigterm.remove()
            with recorder.guard("removing the hooks"):
                capture.remove()
            self._write(opened)

    def end_step(self, is_last: bool = False) -> None:
        """End the step, and wait for communications in flight, but after the last one; see ``Recording``."""
        window = self.parts.window
        opened = window.open_step
        window.open_step = None
        if opened is None or self._capture is None:
            return
        window.state = State.IDLE
        recorder = opened.recorder
        with recorder.guard("restoring the SIGTERM handler"):
            self.parts.sigterm.remove()
        with recorder.guard("removing the hooks"):
            self._capture.end_step()
        try:
            if is_last and recorder.queue.has_communication_in_flight:
                recorder.queue.flush_incomplete()
            else:
                recorder.queue.flush(end_of_step=True)
        finally:
            is_written = self._write(opened)
            with recorder.guard("ending the step"):
                self._end(opened)
                if not opened.writer.documents.is_empty:
                    self.parts.report.add_step(window.step, self.parts.root, is_written)

    def _write(self, opened: OpenStep) -> bool:
        """Write the documents, unless the step is kept in memory; return whether they are on disk, or may follow."""
        with opened.recorder.guard("writing the documents"):
            if not self.settings.keep_steps and opened.write(end_of_step=True):
                self.parts.last_folder = (
                    opened.writer.folder if self.settings.task == "statistics" else ""
                )
                _log.info("step %d is in %s", self.parts.window.step, opened.writer.folder)
            return True
        return False

    def _end(self, opened: OpenStep) -> None:
        """Close the dump of a step, and log the names of settings that matched no call."""
        logged = self.parts.logged
        recorder = opened.recorder
        if recorder.snapshot is not None:
            with recorder.guard("noting the inputs of the model"):
                recorder.snapshot.end_step()
        unmatched, *others = (tree.close() for tree, _ in opened.trees)
        unmatched = [
            name
            for name in unmatched
            if name not in logged and all(name in other for other in others)
        ]
        for _, writer in opened.trees:
            writer.close()
        if unmatched and self.settings.level != "debug":
            logged.update(unmatched)
            _log.warning(
                "nothing matched these names of scope, list, exclude or tensor_list: %s",
                ", ".join(unmatched),
            )
        for measurers in self._measurers.values():
            measurers.copier.forget()  # and with it the measurer
        if isinstance(recorder.task, NanCheck):
            self.parts.report.add_look(recorder.task.looked_at)
            if recorder.task.should_write():
                self._hits += 1
                self._is_finished = self._hits == self.settings.max_hits
        for warning in filter(None, (*recorder.task.end_step(), self.parts.ranks.disagreement())):
            self.parts.log_once(warning)

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; see ``Recording``."""
        window = self.parts.window
        has_model = window.state is State.RECORDING and self.parts.models is not None
        window.state = State.IDLE
        if self._capture is not None:
            self._capture.remove()
            self._capture.end_step()
        for recorder, writer in window.open_step.trees if window.open_step is not None else ():
            recorder.close()
            writer.discard()
        window.open_step = None
        return None if has_model else with_loss(network, loss)

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record a value under a name at level "debug"."""
        if self.settings.level != "debug":
            return
        self.parts.unless_disabled("saving", self._open_debug_step)
        opened = self.parts.window.open_step
        capture = self._capture
        if (
            opened is not None
            and capture is not None
            and isinstance(opened.recorder.task, DebugTask)
        ):
            capture.save(opened.recorder, opened.recorder.task, variable, name, save_backward)

    def _open_debug_step(self) -> None:
        if self._open_step() is not None:
            self.parts.sigterm.install()

    def detach(self) -> None:
        """Release everything in a forked child; see ``Recording``."""
        window = self.parts.window
        if self._capture is not None:
            self._capture.detach()
        for recorder, writer in window.open_step.trees if window.open_step is not None else ():
            recorder.detach()
            writer.close()
        window.state = State.IDLE
        window.open_step = None

    # -- what a step consists of ------------------------------------------------------------------------------------

    def _new_step(self, capture: CaptureBackend) -> OpenStep | None:
        """Return the dump of a step, with its journal; None if the step cannot be recorded.

        Raise UsageError when ``dump_path`` holds another run's dump, or another process writes there.
        """
        settings = self.settings
        folders = self.parts.folders
        window = self.parts.window
        path = settings.dump_path
        name = file_names.rank_name(self.parts.ranks.rank())
        is_new = self.parts.choose_root(settings)
        root = self.parts.root
        captures: list[CaptureBackend] = [capture, *filter(None, [capture.companion])]
        roots = (
            [root]
            if len(captures) == 1
            else [os.path.join(root, tree) for tree in file_names.TREES]
        )
        places = [folders.step_folder(place, window.step, name) for place in roots]
        opened = OpenStep([self._new_tree(*pair) for pair in zip(places, captures)])
        try:
            with opened.recorder.guard("making the journal"):
                for _, writer in opened.trees:
                    writer.open()
                if is_new and settings.journaled:
                    folders.lock(opened.writer.folder)
        except ProbeError:
            if is_new:
                folders.forget(path, name)
                raise
            _log.exception("step %d is not recorded", window.step)
            return None
        return opened

    def _new_tree(self, folder: str, capture: CaptureBackend) -> tuple[StepRecorder, DumpWriter]:
        settings = self.settings
        measurers = self._measurers.get(capture.select_measurers)
        if measurers is None:
            self._budget.allow(settings.max_disk)
            measurers = self._measurers[capture.select_measurers] = capture.select_measurers(
                settings
            )
        is_nan_check = settings.task == "nan_check"
        arrays = ArrayWriter(folder, self._budget, settings.link_equal)
        saves_arrays = (
            is_nan_check or settings.task == "tensor" or settings.tensor_list or settings.golden
        )
        header = {
            "task": "statistics" if is_nan_check else settings.task,
            "level": settings.level,
            "framework": layers()[-1].framework,
            "dump_data_dir": arrays.folder if saves_arrays else None,
            "run": run_header(self.parts.ranks),
        }
        has_stacks = settings.extra_info and settings.level != "debug"
        errors = ErrorLog(folder, self._logged_kinds)
        each = settings.journal == "each" or settings.level == "debug" or capture.journals_each
        texts = self._stacks.texts()
        documents = JsonDocuments(
            folder, header, texts, has_stacks, settings.journaled, errors, each
        )
        writer = DumpWriter(documents, arrays, errors)
        name_filter = NameFilter(settings)
        parts = StepParts(
            settings=settings,
            measurers=measurers,
            wait=capture.wait,
            writer=writer,
            name_filter=name_filter,
            stacks=self._stacks,
            hits=self._hits,
            make_queue=self.queues(writer),
        )
        build = _BUILDERS["debug" if settings.level == "debug" else settings.task]
        return StepRecorder(settings, *build(parts), writer, self._stacks, name_filter), writer

    def _begin_snapshot(self, opened: OpenStep, capture: CaptureBackend) -> None:
        """Note the circumstances of the run, unless they are on disk. Task nan_check has written nothing yet."""
        parts = self.parts
        if self.settings.snapshot and self.settings.task != "nan_check":
            cells = iter_cells(parts.models) if parts.models is not None else ()
            with opened.recorder.guard("writing run.json"):
                read = self._measurers[capture.select_measurers].measurer.read
                parts.snapshot.begin(
                    opened.recorder.queue,
                    opened.writer.folder,
                    parts.window.step,
                    read,
                    lambda: run_header(parts.ranks),
                    cells,
                )
                opened.recorder.snapshot = parts.snapshot
                if parts.has_other_model():
                    parts.snapshot.other_model(type(parts.models).__name__)


# -- the task of a step, with its queue: a new one is a row in ``_BUILDERS`` ------------------------------------------


class StepParts(NamedTuple):
    """The parts of a step from which its task is built."""

    settings: Settings
    measurers: Measurers  # the measurers of the run
    wait: Callable[[], None]  # waits for asynchronous work; raises a pending error of the training
    writer: DumpWriter
    name_filter: NameFilter  # selects calls by name
    stacks: CallStacks
    hits: int  # the number of findings in earlier steps
    make_queue: Callable[..., MeasurementQueue]

    def queue(
        self, accept: Callable[[Entry], None], complete_only: bool = False
    ) -> MeasurementQueue:
        """Return a queue that passes entries on to ``accept``."""
        return self.make_queue(
            *self.measurers, self.wait, accept, self.writer.errors.guard, complete_only
        )


def _values(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    settings = parts.settings
    queue = parts.queue(parts.writer.accept)
    sink = parts.writer.array
    keeps = parts.name_filter.keeps_arrays
    every = sink if settings.task == "tensor" else None
    chooses = every is None and settings.tensor_list
    sink_of: Any = (lambda name: sink if keeps(name) else None) if chooses else (lambda name: every)
    notes = StorageNotes(queue.measure, parts.writer.tell) if settings.storage else None
    return ValuesTask(queue, sink_of, settings.data_mode, notes), queue


def _structure(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    gradients = GradientUse.ORDER if parts.settings.extra_info else GradientUse.NONE
    without_waiting = parts._replace(wait=lambda: None)
    return Task(parts.settings.data_mode, gradients), without_waiting.queue(parts.writer.accept)


def _nan_check(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    measurer = parts.measurers.measurer
    assert isinstance(measurer, ExtremaMeasurer)
    finder = FirstNonFinite(measurer, parts.writer, parts.stacks, parts.settings, parts.hits)
    queue = finder.queue = parts.queue(finder.accept, complete_only=True)
    return NanCheck(finder, queue, parts.writer.array, parts.settings.data_mode), queue


def _debug(parts: StepParts) -> tuple[Task, MeasurementQueue]:
    queue = parts.queue(parts.writer.accept)
    return DebugTask(queue, parts.writer.array if parts.settings.task == "tensor" else None), queue


_BUILDERS: Mapping[str, Callable[[StepParts], tuple[Task, MeasurementQueue]]] = {
    "statistics": _values,
    "tensor": _values,
    "structure": _structure,
    "nan_check": _nan_check,
    "debug": _debug,
}
