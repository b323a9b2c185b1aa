# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The files of one step and rank: documents, journal, arrays, error log. No error of a file gets past here."""

from __future__ import annotations

import errno
import json
import logging
import os
from typing import Any

from probe.entry import Entry
from probe.findings.sentence import Sentence
from probe.store import file_io, file_names
from probe.store.arrays import ArrayWriter
from probe.store.documents import JsonDocuments
from probe.store.error_log import ErrorLog

_log = logging.getLogger("probe")
_MOST_LOGGED, _MOST_TOLD = 10, 1000  # findings of one step on the log, and in its file


class DumpWriter:
    """Writes one rank folder."""

    def __init__(self, documents: JsonDocuments, arrays: ArrayWriter, errors: ErrorLog) -> None:
        self.documents, self._arrays, self.errors = documents, arrays, errors
        self.folder, self._told = documents.folder, 0
        self.accept, self.has_parent = documents.accept, documents.has_construct
        self.close = documents.journal.close  # leaves the journal where it is, if it is still there
        self.discard = documents.journal.remove  # leaves nothing of the entries on disk

    def draft(self, entry: Entry) -> None:
        """Append an entry that is not finished to the journal."""
        self.documents.draft(entry.name, entry.parts, -1 if entry.is_backward else entry.stack, entry.parents)

    def array(self, name: str, array: Any) -> tuple[str, object]:
        """Write an array; see ``ArrayWriter.save``. One that cannot be written leaves its numbers."""
        saved: tuple[str, object] = ("", None)
        budget = self._arrays.budget
        was_exhausted = budget.exhausted_reason
        try:
            saved = self._arrays.save(name, array)
        except OSError as error:
            self.errors.report("writing an array", error)
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                budget.exhausted_reason = "the disk is full"
        if not was_exhausted and budget.exhausted_reason:
            self.errors.warn(f"{budget.exhausted_reason}: no more arrays are written; everything else continues")
        return saved

    def tell(self, said: Sentence) -> None:
        """Write a finding that is known while the training runs as a line of a file, and the first ones on the log."""
        self._told += 1
        if self._told <= _MOST_LOGGED:
            _log.warning("%s", said)
        if self._told <= _MOST_TOLD:
            line = json.dumps({**said.to_dict(), "sentence": str(said)}, ensure_ascii=False)
            path = os.path.join(self.folder, file_names.FINDINGS)
            if self._told == _MOST_LOGGED + 1:
                _log.warning("more findings are in %s", path)
            with self.errors.guard("writing a finding"):
                file_io.make_dirs(self.folder)
                file_io.append(path, line + "\n")

    def open(self) -> None:
        """Begin the journal: this process alone writes into the folder now. Raise UsageError when another one does."""
        if self.documents.journal.is_wanted:
            self.documents.journal.open()
