# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One step of the training beside one of the golden run: each entry is compared when it is finished."""

from __future__ import annotations

import contextlib
from typing import Any

from probe.entry import Entry
from probe.errors import UsageError
from probe.golden.agreement import Agreement, is_part
from probe.golden.golden_entries import GoldenEntries
from probe.golden.kept_tensors import KeepingMeasurer, KeptTensors
from probe.measure.measurer import Measurer
from probe.recording.measurement_queue import MeasurementQueue
from probe.store.dump_writer import DumpWriter


class WatchedStep:
    """Takes the entries of a step before their writer, which keeps them in memory until one may be a difference.

    From then on each is in the journal too. ``probe compare`` decides at the end of the step.

    Attributes:
        writer: collects the entries.
        golden: the entries of the golden run.
        kept: the tensors of the last entries.
        is_suspect: an entry may be a difference, or a change of the calls.
    """

    def __init__(self, writer: DumpWriter, golden: GoldenEntries, kept: KeptTensors) -> None:
        self.writer, self.golden, self.kept, self.is_suspect = writer, golden, kept, False
        self._agreement = Agreement()
        self._queue: MeasurementQueue | None = None
        self._measurer: Measurer | None = None
        self._seen: set[str] = set()
        self._open: dict[str, str] = {}  # entries that lack keys of the golden run's, whose text this is: they go on
        self._again: set[str] = set()  # entries that went on after they had agreed

    def new_queue(self, measurer: Measurer, copier: Any, wait: Any, accept: Any, *others: Any) -> MeasurementQueue:
        """Return the queue of the step, which passes entries on to this object; see ``MeasurementQueue``."""
        self._measurer = measurer
        keeping = KeepingMeasurer(self.kept, measurer)
        self._queue = MeasurementQueue(keeping, copier, wait, self.accept, *others)
        return self._queue

    def accept(self, entry: Entry) -> None:
        """Take a finished entry, or further keys of one."""
        self.writer.accept(entry)
        with self.writer.errors.guard("comparing with the golden run", entry.name):
            own = self.writer.documents.text(entry.name)
            if entry.name in self._open:
                self._compare(entry, self._open.pop(entry.name), own)
            elif entry.name in self._seen:
                self._again.add(entry.name)
            else:
                self._seen.add(entry.name)
                golden = self._found(entry.name, own)
                if golden is not own:
                    self._compare(entry, golden, own)
            self.kept.end(entry)

    def _found(self, name: str, own: str) -> str | None:
        try:
            return self.golden.find(name, own)
        except (OSError, UsageError):  # the comparison at the end of the step tells it
            return None

    def _compare(self, entry: Entry, golden: str | None, own: str) -> None:
        with contextlib.suppress(ValueError):  # the golden run's is no JSON
            if golden is not None and self._agreement.holds(entry.name, golden, own):
                return
            if golden is not None and is_part(own, golden):
                self._open[entry.name] = golden
                return
        self._suspect()
        if self._queue is not None and self._measurer is not None and self._queue.may_read:
            self.kept.hold(entry, self._measurer)

    def _suspect(self) -> None:
        if not self.is_suspect:
            self.is_suspect = True
            with self.writer.errors.guard("writing the journal"):
                self.writer.documents.begin_journal()

    def end(self) -> None:
        """End the step: look again at entries that went on, and for entries that only the golden run has."""
        try:
            with self.writer.errors.guard("comparing with the golden run"):
                for name in self._again:
                    golden = self.golden.named(name)
                    if golden is None or not self._agreement.holds(name, golden, self.writer.documents.text(name)):
                        self.is_suspect = True
                if self._open or not self.golden.in_order or not self.golden.is_over():
                    self.is_suspect = True
        finally:
            self.golden.close()
