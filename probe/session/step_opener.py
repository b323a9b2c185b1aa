# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One run: the objects that its steps share. It opens each step in a folder that no other process writes."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from typing import Protocol

from probe.config.settings import Settings
from probe.errors import ProbeError, SettingsError
from probe.measure.select import Measurers
from probe.process.rank import RankResolver, has_siblings, run_header
from probe.recording.call_stacks import CallStacks
from probe.recording.name_filter import NameFilter
from probe.recording.step_recorder import StepRecorder
from probe.session.session_state import wants_rank
from probe.snapshot.snapshot import NamedCells, Snapshot
from probe.store import file_io, file_names
from probe.store.arrays import ArrayWriter
from probe.store.disk_budget import DiskBudget
from probe.store.documents import JsonDocuments
from probe.store.dump_writer import DumpWriter
from probe.store.error_log import ErrorLog
from probe.store.run_folders import RunFolders
from probe.tasks.build import StepParts, build_task

_log = logging.getLogger("probe")


class Watcher(Protocol):
    """The part of a capture backend that a run asks.

    Attributes:
        select_measurers: settings -> the measurers of its values.
        wait: waits for asynchronous work; raises a pending error of the training.
        companion: watches the compiled Cells of a training in PyNative mode: their dump is a tree of its own.
    """

    wait: Callable[[], None]

    @property
    def select_measurers(self) -> Callable[[Settings], Measurers]:
        """See above."""

    @property
    def companion(self) -> Watcher | None:
        """See above."""


class StepOpener:
    """Shares stacks, measurers, folders and disk budget among the steps of one run.

    Attributes:
        settings: the settings of the run.
        ranks: tells the rank of this process.
        folders: the folders that this process writes.
        root: the folder of this run: ``dump_path``, or one beside it.
        finished: the task has reached its goal: no further step is recorded.
        last_folder: the rank folder of the last step with statistics, or "".
        logged: messages that were logged already.
    """

    def __init__(self, settings: Settings, folders: RunFolders) -> None:
        self.settings, self.root = settings, settings.dump_path
        self.ranks, self.folders = RankResolver(), folders
        folders.snapshot = folders.snapshot or Snapshot()
        self.finished, self.last_folder, self._hits = False, "", 0
        self.logged: set[str] = set()
        self._stacks, self._budget = CallStacks(), DiskBudget(settings.max_disk)
        self._logged_kinds: set[tuple[str, str]] = set()
        self._measurers: dict[Callable[[Settings], Measurers], Measurers] = {}

    def with_settings(self, settings: Settings) -> StepOpener:
        """Return the run that continues this one under other settings."""
        run = copy.copy(self)
        run.settings, run.finished, run._measurers, run._hits = settings, False, {}, 0
        return run

    def __repr__(self) -> str:
        return f"StepOpener({self.settings.dump_path!r})"

    def check_dump_path(self) -> None:
        """Make sure that ``dump_path`` can be written, if this rank records.

        Raises:
            SettingsError: when it cannot.
            UsageError: when processes were launched together and it holds another run's dump of this rank.
        """
        path, rank = self.settings.dump_path, self.ranks.rank()
        if not wants_rank(self.settings, rank):
            return
        problem = file_io.why_unwritable(path)
        if problem:
            raise SettingsError(f"dump_path: {path!r} cannot be written: {problem}. Choose another folder.")
        if has_siblings() and not self.settings.overwrite:
            self.folders.refuse_other_runs(path, file_names.rank_name(rank))

    def open_step(self, step: int, first_step: int, capture: Watcher) -> StepRecorder | None:
        """Return the recorder of a step, with its journal; None if the step cannot be recorded.

        ``first_step`` is the number that set_init_step() gave, or -1. Raise UsageError when ``dump_path`` holds another
        run's dump, or another process writes there.
        """
        settings, name = self.settings, file_names.rank_name(self.ranks.rank())
        self.root, is_new = self.folders.root(
            settings.dump_path, name, step, first_step, settings.overwrite, steps_aside=not has_siblings()
        )
        if is_new and self.root != settings.dump_path:
            aside = '%s holds the dump of another run; this run writes into %s ("overwrite": true would replace it)'
            _log.warning(aside, settings.dump_path, self.root)
        folder = self.folders.step_folder(self.root, step, name)
        companion = capture.companion
        if companion is not None:
            folder, graph = (
                self.folders.step_folder(os.path.join(self.root, tree), step, name) for tree in file_names.TREES
            )
        recorder = self._new_recorder(folder, capture)
        if companion is not None:
            recorder.companion = self._new_recorder(graph, companion)
        try:
            with recorder.guard("making the journal"):
                recorder.open()
                if is_new and settings.journaled:
                    self.folders.lock(folder)
        except ProbeError:
            if is_new:
                self.folders.forget(settings.dump_path, name)
                raise
            _log.exception("step %d is not recorded", step)
            return None
        return recorder

    def begin_snapshot(self, recorder: StepRecorder, step: int, capture: Watcher, cells: NamedCells) -> None:
        """Note the circumstances of the run, unless they are on disk. Task nan_check has written nothing yet."""
        if self.settings.snapshot and self.settings.task != "nan_check":
            with recorder.guard("writing run.json"):
                read = self._measurers[capture.select_measurers].measurer.read
                self.folders.snapshot.begin(recorder, step, read, lambda: run_header(self.ranks.rank()), cells)
                recorder.snapshot = self.folders.snapshot

    def end_step(self, recorder: StepRecorder) -> None:
        """Close the recorder of a step, and log the names of settings that matched no call."""
        if recorder.snapshot is not None:
            with recorder.guard("noting the inputs of the model"):
                recorder.snapshot.end_step()
        unmatched = [name for name in recorder.close() if name not in self.logged]
        if unmatched and self.settings.level != "debug":
            self.logged.update(unmatched)
            _log.warning("nothing matched these names of scope, list, exclude or tensor_list: %s", ", ".join(unmatched))
        for measurers in self._measurers.values():
            measurers.copier.forget()  # and with it the measurer
        if self.settings.task == "nan_check" and recorder.task.should_write():
            self._hits += 1
            self.finished = self._hits == self.settings.max_hits
        for warning in (*recorder.task.end_step(), self.ranks.disagreement()):
            if warning and warning not in self.logged:
                self.logged.add(warning)
                _log.warning("%s", warning)

    def _new_recorder(self, folder: str, capture: Watcher) -> StepRecorder:
        settings = self.settings
        measurers = self._measurers.get(capture.select_measurers)
        if measurers is None:
            self._budget.allow(settings.max_disk)
            measurers = self._measurers[capture.select_measurers] = capture.select_measurers(settings)
        is_nan_check = settings.task == "nan_check"
        arrays = ArrayWriter(folder, self._budget, settings.link_equal)
        saves_arrays = is_nan_check or settings.task == "tensor" or settings.tensor_list
        header = {
            "task": "statistics" if is_nan_check else settings.task,
            "level": settings.level,
            "framework": "mindspore",
            "dump_data_dir": arrays.folder if saves_arrays else None,
            "run": run_header(self.ranks.rank()),
        }
        has_stacks = settings.extra_info and settings.level != "debug"
        documents = JsonDocuments(folder, header, self._stacks.texts(), has_stacks, journal=settings.journaled)
        writer = DumpWriter(documents, arrays, ErrorLog(folder, self._logged_kinds))
        name_filter = NameFilter(settings)
        parts = StepParts(settings, measurers, capture.wait, writer, name_filter, self._stacks, self._hits)
        return StepRecorder(settings, *build_task(parts), writer, self._stacks, name_filter)
