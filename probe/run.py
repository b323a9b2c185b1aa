# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Makes the recorder of each step, in a folder that no other process writes."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

from probe.config.settings import Settings
from probe.errors import ProbeError, UsageError
from probe.measure.measurer import Measurer
from probe.measure.select import select_measurer
from probe.process.rank import RankResolver, launched
from probe.recording.call_stacks import CallStacks
from probe.recording.step_recorder import StepRecorder
from probe.store import layout
from probe.store.disk_budget import DiskBudget
from probe.store.folder_lock import FolderLocks, clear
from probe.tasks.debug import DebugTask
from probe.tasks.structure import StructureTask
from probe.window import StepWindow

_log = logging.getLogger("probe")


class Run:
    """What the recorders of a run share.

    Args:
        settings: the settings of the run.
        ranks: tells the rank of this process.

    Attributes:
        claims: the folders that are this run's.
    """

    def __init__(self, settings: Settings, ranks: RankResolver) -> None:
        self._settings, self._ranks = settings, ranks
        self._stacks = CallStacks()
        self._told: set[tuple[str, str]] = set()
        self._room = DiskBudget(settings.max_disk)
        self._meter: Measurer | None = None
        self.claims = FolderLocks()

    def use(self, settings: Settings, claims: FolderLocks) -> None:
        """Follow other settings from now on."""
        self._settings, self.claims = settings, claims
        self._room.allow(settings.max_disk)
        self._meter = None

    def open(self, step: int, wait: Callable[[], None]) -> StepRecorder | None:
        """Return the recorder of a step, with its journal; None where that cannot be.

        Args:
            step: the number of the step.
            wait: waits for what runs asynchronously.

        Raises:
            UsageError: when ``dump_path`` holds another run's dump, or another process writes there.
        """
        settings, name = self._settings, self._ranks.folder()
        first = name not in self.claims
        if first:
            self.claims.look(settings.dump_path, name, settings.overwrite)
        if self._meter is None:
            self._meter = select_measurer(settings)
        folder = layout.rank_folder(settings.dump_path, step, name)
        kind = (
            StructureTask if settings.task == "structure" else DebugTask if settings.level == "debug" else StepRecorder
        )
        recorder = kind(settings, self._meter, self._stacks, folder, self._room, self._told, wait)
        try:
            recorder.files.open()
            if first and recorder.first is None:
                self.claims.hold(folder)
            if not layout.is_named(folder):
                recorder.files.await_rank(self._ranks.watcher(), launched())
        except ProbeError:
            if first:
                self.claims.forget(name)
                raise
            _log.exception("step %d is not recorded", step)
            return None
        except Exception as error:
            recorder.trouble("making the journal", error)
        return recorder

    def name(self, recorder: StepRecorder, window: StepWindow) -> bool:
        """Give the folder of a step that ends its rank's name, if that has become known since the step began.

        Returns:
            False where this rank was not to be recorded: then nothing is left of the step.
        """
        rank = None if layout.is_named(recorder.folder) else self._ranks.expected()
        try:
            if rank is not None and not window.wants_rank(rank):
                self._remove(recorder)
                return False
            if rank is not None:
                self._rename(recorder, layout.rank_name(rank))
        except UsageError as error:  # of another run
            _log.warning("rank %d stays in %s: %s", rank, recorder.folder, error)
        finally:
            recorder.files.has_its_name()
        return True

    def _rename(self, recorder: StepRecorder, name: str) -> None:
        folder = os.path.join(os.path.dirname(recorder.folder), name)
        if name not in self.claims:
            self.claims.look(self._settings.dump_path, name, self._settings.overwrite)
        elif os.path.isdir(folder):  # our own, of the same step before set_init_step
            clear(folder, overwrite=True)
        recorder.files.move(folder)

    @staticmethod
    def _remove(recorder: StepRecorder) -> None:
        recorder.discard()
        if os.path.isdir(recorder.folder):
            clear(recorder.folder, overwrite=True)
            with contextlib.suppress(OSError):  # something else is in it, or other ranks beside it
                os.rmdir(recorder.folder)
                os.rmdir(os.path.dirname(recorder.folder))
