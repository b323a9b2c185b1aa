# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A recording beside a golden run: nothing is written until a step differs, and then the finding is told."""

from __future__ import annotations

import copy
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from probe.capture.backend import is_graph_mode
from probe.config.settings import Settings
from probe.errors import DifferenceError, UsageError
from probe.findings.sentence import say
from probe.golden.golden_entries import GoldenEntries
from probe.golden.golden_run import GoldenRun, KeptStep
from probe.golden.kept_tensors import KeptTensors
from probe.golden.watched_step import WatchedStep
from probe.process.rank import world_size
from probe.reading.compare.answer.comparison import Comparison
from probe.recording.measurement_queue import MeasurementQueue
from probe.session.dump_recording import DumpRecording
from probe.session.recording import Recording, SessionParts
from probe.session.session_state import OpenStep
from probe.store import file_io, file_names
from probe.store.dump_writer import DumpWriter

_log = logging.getLogger("probe")


class GoldenRecording(Recording):
    """Watches each step that the golden run has; see ``Recording``. It holds a recording that makes the entries."""

    def __init__(self, settings: Settings, parts: SessionParts) -> None:
        super().__init__(settings, parts)
        self._golden: GoldenRun | None = None  # until the first start()
        self._watched: WatchedStep | None = None
        self._before: KeptStep | None = None  # the step before, which may tell more of the finding
        self._is_over, self._further, self._found = False, 0, 0  # steps to write after a difference; differences
        self._agreed = 0
        self._dump = DumpRecording(self._chosen(), parts, self._queues)

    def _chosen(self) -> Settings:
        """Return how this step is recorded: into memory, or on disk after a difference."""
        is_kept = self.settings.golden is not None and not self._further
        return replace(self.settings, task="statistics" if is_kept else self.settings.task, keep_steps=int(is_kept))

    def with_settings(self, settings: Settings) -> GoldenRecording:
        """Return what goes on under other settings; see ``Recording``."""
        found = copy.copy(self)
        found.settings = settings
        if settings.golden != self.settings.golden:
            found._further, found._golden, found._before, found._is_over = 0, None, None, False
        found._dump = self._dump.with_settings(found._chosen())
        found._dump.queues = found._queues
        return found

    def start(self, token_range: Any) -> None:
        """Begin to watch, if the golden run has this step; see ``Recording``."""
        parts, step = self.parts, self.parts.window.step
        if self.settings.golden is None:  # an edit of the settings has taken it away
            self._dump.start(token_range)
            return
        if not parts.window.wants(self.settings, parts.ranks.rank()):
            return
        parts.report.is_reached = True
        if self._golden is None and not self._is_over:
            self._unless_refused(lambda: parts.unless_disabled("reading the golden run", self._open))
        if not self._is_over and self._golden is not None and (self._further or self._golden.folder(step)):
            self._dump.start(token_range)

    def _open(self) -> None:
        if is_graph_mode():
            raise UsageError("golden: GRAPH_MODE is not watched. Record this run too, and give both to probe compare")
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
        golden = None if self._golden is None or self._further else self._golden.folder(self.parts.window.step)
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
        opened, step = self.parts.window.open_step, self.parts.window.step
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
        golden, kept = self._golden, KeptStep(step, watched.writer)
        is_compared = golden is not None and watched.is_suspect and not watched.writer.is_empty
        if golden is None or not is_compared or not golden.differs(kept):
            watched.writer.discard()
            self._before, self._agreed = kept, self._agreed + 1
            return None
        for held in watched.kept.held.values():
            watched.writer.accept(held.write(watched.writer.array))
        opened.write(end_of_step=True)
        steps = [step]
        if self._before is not None:
            steps.insert(0, self._before.step)
            self._before.writer.write_documents(end_of_step=True)
        comparison = golden.compare(self.parts.root, steps)
        self._tell(comparison, watched.writer.folder)
        self._before, self._found = None, self._found + 1
        if self._found >= self.settings.diff_nums:
            self._further = int(self.settings.on_difference == "record" and golden.has_after(step))
            self._is_over = not self._further
            if self._further:
                self._dump = self._dump.with_settings(self._chosen())
        return comparison

    def _tell(self, comparison: Comparison, folder: str) -> None:
        with file_io.atomic_write(os.path.join(folder, file_names.GOLDEN)) as file:
            file.write(json.dumps(comparison.to_dict(), indent=1))
        self.parts.last_folder = folder
        _log.warning("%s", _told(comparison, self.settings, self.parts.root))

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Discard earlier calls; see ``Recording``."""
        return self._dump.begin_training(network, loss)

    def close(self) -> None:
        """Say how many steps agree."""
        report, settings = self.parts.report, self.settings
        if settings.golden is None:
            return
        if not report.said and report.is_reached and not settings.quiet and not self.parts.ranks.rank():
            said = say("golden.end", agreed=self._agreed, differ=self._found, golden=str(settings.golden))
            if _log.hasHandlers() and _log.isEnabledFor(logging.INFO):
                _log.info("%s", said)
            else:
                print(f"probe: {said}", file=sys.stderr)
        report.said = True

    def detach(self) -> None:
        """Release everything in a forked child; see ``Recording``."""
        self._watched, self._is_over = None, True
        self._dump.detach()


def _told(comparison: Comparison, settings: Settings, root: str) -> Any:
    """Return the sentence about the first difference."""
    first = comparison.first
    if first is None:
        return say("golden.unnamed", look=_look(settings, root))
    line = f"{first.file}:{first.line}: {first.source}" if first.file else first.name
    return say("golden.differs", step=first.step, finding=first.said, line=line, look=_look(settings, root))


def _look(settings: Settings, root: str) -> str:
    return f"probe compare {shlex.quote(str(settings.golden))} {shlex.quote(root)}"
