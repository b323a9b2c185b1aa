# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A recording beside a golden run: nothing is written until a step differs, and then the finding is told."""

from __future__ import annotations

import copy
import json
import logging
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from probe.capture.backend import is_graph_mode
from probe.config.settings import Settings
from probe.errors import DifferenceError, UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.golden.kept_tensors import KeptTensors
from probe.golden.watched_step import GoldenEntries, WatchedStep
from probe.process.rank import world_size
from probe.reading.compare.answer.comparison import Comparison, Request, compare_runs
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import Options
from probe.reading.dumps.document import Document
from probe.reading.dumps.folders import DumpFolder, find_folders
from probe.reading.dumps.run import shortened
from probe.reading.dumps.values import record_sharer
from probe.recording.measurement_queue import MeasurementQueue
from probe.series.series import find_series
from probe.session.dump_recording import DumpRecording
from probe.session.recording import OpenStep, Recording, SessionParts
from probe.store import file_io, file_names
from probe.store.arrays import DumpWriter

_MOST_RANKS = 16  # so many ranks are compared together; of more each is compared alone
_log = logging.getLogger("probe")


class KeptStep(NamedTuple):
    """A step of this run whose entries are in memory."""

    step: int
    writer: DumpWriter


class _HeldSource(NamedTuple):
    """Reads the entries that a writer keeps in memory."""

    writer: DumpWriter

    def read(self, folder: str) -> Document:
        """Read them as they are now; see ``FolderKind``."""
        header, text, stacks, construct = self.writer.documents.held()
        return Document(
            header,
            json.loads(text, object_hook=record_sharer([])),
            lambda: stacks,
            lambda: construct,
            [],
        )


class GoldenRun:
    """The dump of a golden run, for one rank of this run. UsageError says what to do where none fits."""

    def __init__(self, path: str, rank: int | None, world_size: int) -> None:
        self.path = path
        self._rank = rank
        folders = _folders(path)
        ranks = list(dict.fromkeys(folder.rank for folder in folders))
        is_lone = len(ranks) == 1 and world_size == 1
        if not is_lone and (rank not in ranks or len(ranks) > world_size):
            raise UsageError(
                say("golden.ranks", path=path, ranks=shortened(ranks), rank=rank, size=world_size)
            )
        if any(folder.tree for folder in folders):
            raise UsageError(say("golden.compiled", path=path))
        self._world_size = world_size
        self._by_step = {
            folder.step: folder for folder in folders if is_lone or folder.rank == rank
        }

    def folder(self, step: int) -> DumpFolder | None:
        """Return the golden run's folder of a step; None where it has no such step."""
        return self._by_step.get(None) or self._by_step.get(step)

    def has_after(self, step: int) -> bool:
        """Return whether the golden run has a step behind this one."""
        return any(other is not None and other > step for other in self._by_step)

    def differs(self, kept: KeptStep) -> bool:
        """Return whether ``probe compare`` names a difference in a step; raise UsageError where it cannot compare."""
        golden = self.folder(kept.step)
        if golden is None:
            return False
        unit = compare_unit(
            golden,
            DumpFolder(kept.writer.folder, kept.step, self._rank, "", _HeldSource(kept.writer)),
            Options(),
        )
        found = Comparison((self.path, ""), [unit], ([], []), [], Options())
        if not found.is_comparable:
            reason = unit.error or say("golden.few_pairs")
            raise UsageError(say("golden.not_comparable", path=golden.path, reason=reason))
        return bool(unit.origins.first or unit.counts.differs)

    def compare(self, root: str, steps: Sequence[int]) -> Comparison:
        """Compare the steps that are on disk, also of other ranks; see ``probe.compare``. Raises UsageError."""
        chosen = "" if None in self._by_step else ",".join(map(str, steps))
        rank = "" if self._world_size <= _MOST_RANKS else str(self._rank)
        return compare_runs(self.path, root, Request(step=chosen, rank=rank))


def _folders(path: str) -> list[DumpFolder]:
    """Return the rank folders of a dump; raise UsageError when there is none."""
    try:
        return find_folders(path)
    except UsageError as error:
        if os.path.isdir(path) and find_series(path):
            raise UsageError(say("golden.rows", path=path)) from None
        raise UsageError(say("golden.unreadable", reason=reason_of(error))) from None


class GoldenRecording(Recording):
    """Watches each step that the golden run has; see ``Recording``. It holds a recording that makes the entries."""

    def __init__(self, settings: Settings, parts: SessionParts) -> None:
        super().__init__(settings, parts)
        self._golden: GoldenRun | None = None  # until the first start()
        self._watched: WatchedStep | None = None
        self._before: KeptStep | None = None  # the step before, which may tell more of the finding
        self._is_over = False
        self._further = 0  # steps to write after a difference
        self._found = 0  # differences
        self._agreed = 0
        self._dump = DumpRecording(self._chosen(), parts, self._queues)

    def _chosen(self) -> Settings:
        """Return how this step is recorded: into memory, or on disk after a difference."""
        is_kept = self.settings.golden is not None and not self._further
        return replace(
            self.settings,
            task="statistics" if is_kept else self.settings.task,
            keep_steps=int(is_kept),
        )

    def with_settings(self, settings: Settings) -> GoldenRecording:
        """Return what goes on under other settings; see ``Recording``."""
        found = copy.copy(self)
        found.settings = settings
        if settings.golden != self.settings.golden:
            found._further = 0
            found._golden = None
            found._before = None
            found._is_over = False
        found._dump = self._dump.with_settings(found._chosen())
        found._dump.queues = found._queues
        return found

    def start(self, token_range: Any) -> None:
        """Begin to watch, if the golden run has this step; see ``Recording``."""
        parts = self.parts
        step = self.parts.window.step
        if self.settings.golden is None:  # an edit of the settings has taken it away
            self._dump.start(token_range)
            return
        if not parts.window.wants(self.settings, parts.ranks.rank()):
            return
        parts.report.is_reached = True
        if self._golden is None and not self._is_over:
            self._unless_refused(
                lambda: parts.unless_disabled("reading the golden run", self._open)
            )
        if (
            not self._is_over
            and self._golden is not None
            and (self._further or self._golden.folder(step))
        ):
            self._dump.start(token_range)

    def _open(self) -> None:
        if is_graph_mode():
            raise UsageError(say("golden.graph_mode"))
        rank = self.parts.ranks.rank()
        self._golden = GoldenRun(str(self.settings.golden), rank, world_size())

    def _unless_refused(self, action: Callable[[], Any]) -> Any:
        """Run an action; where the golden run cannot be read, one line says so, and the training goes on."""
        try:
            return action()
        except UsageError as error:
            self._is_over = True
            if self._watched is not None:
                self._watched.writer.discard()
            _log.warning("%s. The training goes on, and nothing more is compared", error)
            return None

    def _queues(self, writer: DumpWriter) -> Callable[..., MeasurementQueue]:
        """Return how the queue of a step is made: it passes its entries on to the watched step."""
        golden = (
            None
            if self._golden is None or self._further
            else self._golden.folder(self.parts.window.step)
        )
        entries = golden and self._unless_refused(lambda: GoldenEntries(golden))
        if entries is None:
            return MeasurementQueue
        kept = KeptTensors(self.settings.golden_arrays, self.settings.exact_dtypes)
        self._watched = WatchedStep(writer, entries, kept)
        return self._watched.new_queue

    def stop(self) -> None:
        """Watch no more; see ``Recording``."""
        self._dump.stop()

    def end_step(self, is_last: bool = False) -> None:
        """End the step, and compare it where it may differ; see ``Recording``."""
        opened = self.parts.window.open_step
        step = self.parts.window.step
        comparison: Comparison | None = None
        try:
            self._dump.end_step(is_last)
        finally:
            watched = self._watched
            if opened is not None and self._further:
                self._further -= 1
                self._is_over = not self._further
            elif watched is not None and opened is not None:
                with watched.writer.errors.guard("comparing with the golden run"):
                    comparison = self._unless_refused(lambda: self._compared(watched, opened, step))
            self._watched = None
        if comparison is not None and self.settings.on_difference == "raise" and not is_last:
            raise DifferenceError(str(_told(comparison, self.settings, self.parts.root)))

    def _compared(self, watched: WatchedStep, opened: OpenStep, step: int) -> Comparison | None:
        """Return the comparison of a step that differs, after it was written and told; None where it agrees."""
        watched.end()
        golden = self._golden
        kept = KeptStep(step, watched.writer)
        is_compared = (
            golden is not None and watched.is_suspect and not watched.writer.documents.is_empty
        )
        if golden is None or not is_compared or not golden.differs(kept):
            watched.writer.discard()
            self._before = kept
            self._agreed = self._agreed + 1
            return None
        for held in watched.kept.held.values():
            watched.writer.accept(held.write(watched.writer.array))
        opened.write(end_of_step=True)
        steps = [step]
        if self._before is not None:
            steps.insert(0, self._before.step)
            self._before.writer.documents.write()
        comparison = golden.compare(self.parts.root, steps)
        with file_io.atomic_write(os.path.join(watched.writer.folder, file_names.GOLDEN)) as file:
            file.write(json.dumps(comparison.to_dict(), indent=1))
        self.parts.last_folder = watched.writer.folder
        _log.warning("%s", _told(comparison, self.settings, self.parts.root))
        self._before = None
        self._found = self._found + 1
        if self._found >= self.settings.diff_nums:
            self._further = int(self.settings.on_difference == "record" and golden.has_after(step))
            self._is_over = not self._further
            if self._further:
                self._dump = self._dump.with_settings(self._chosen())
        return comparison

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; see ``Recording``."""
        return self._dump.begin_training(network, loss)

    def last_line(self) -> str:
        """Say how many steps agree; see ``Recording``."""
        if self.settings.golden is None or not self.parts.report.is_reached:
            return ""
        if not self._agreed and not self._found:
            reason = say("golden.none.read" if self._is_over else "golden.none.steps")
            return str(say("golden.none", golden=str(self.settings.golden), reason=reason))
        golden = str(self.settings.golden)
        if self._agreed == 1:
            return str(say("golden.end_of_one", differ=self._found, golden=golden))
        return str(say("golden.end", agreed=self._agreed, differ=self._found, golden=golden))

    def detach(self) -> None:
        """Release everything in a forked child; see ``Recording``."""
        self._watched = None
        self._is_over = True
        self._dump.detach()


def _told(comparison: Comparison, settings: Settings, root: str) -> Any:
    first = comparison.first
    if first is None:
        return say("golden.unnamed", look=_look(settings, root))
    line = f"{first.file}:{first.line}: {first.source}" if first.file else first.name
    return say(
        "golden.differs", step=first.step, finding=first.said, line=line, look=_look(settings, root)
    )


def _look(settings: Settings, root: str) -> str:
    return f"probe compare {shlex.quote(str(settings.golden))} {shlex.quote(root)}"
