# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The files of one step and rank: documents, journal, arrays, error log. No error of a file gets past here."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

from probe.entry import Entry
from probe.naming import message_of
from probe.store.arrays import ArrayWriter
from probe.store.disk_budget import DiskBudget
from probe.store.documents import JsonDocuments
from probe.store.error_log import ErrorLog


class DumpWriter:
    """Writes one rank folder.

    Args:
        folder: the rank folder.
        documents: the documents, with or without a journal.
        arrays: writes arrays.
        budget: the bytes that arrays may take.
        errors: reports errors of the tool.

    Attributes:
        errors: see above.
    """

    def __init__(self, documents: JsonDocuments, arrays: ArrayWriter, budget: DiskBudget, errors: ErrorLog) -> None:
        self._documents, self._arrays, self._budget = documents, arrays, budget
        self.errors = errors

    @property
    def folder(self) -> str:
        """The rank folder."""
        return self._documents.folder

    def has_parent(self, name: str) -> bool:
        """Return whether construct.json will have this name as a key."""
        return self._documents.has_construct(name)

    def write(self, entry: Entry) -> None:
        """Write an entry: into the journal now, into the documents at ``write_documents``."""
        stack = -1 if entry.is_backward else entry.stack
        try:
            if stack >= 0:
                self._documents.stack(entry.name, stack)
            self._documents.entry(entry.name, entry.parts, stack, entry.parents)
        except OSError as error:  # the journal's; the documents keep the entry
            self.errors.report("writing the journal", error)
        except Exception as error:
            self.errors.report("writing an entry", error, entry.name)
            with self.errors.guard("writing an entry", entry.name):
                self._documents.entry(entry.name, {"error": message_of(error)})

    def write_stack(self, name: str, stack: int) -> None:
        """Note the stack of a forward entry that is not written itself."""
        self._documents.stack(name, stack)

    def array(self, name: str, array: Any) -> str:
        """Write an array and return the name of its file, or "": one that cannot be written leaves its numbers."""
        was_exhausted = self._budget.exhausted_reason
        try:
            saved = self._arrays.save(name, array)
        except OSError as error:
            self.errors.report("writing an array", error)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return ""
            saved, self._budget.exhausted_reason = "", "the disk is full"
        if not was_exhausted and self._budget.exhausted_reason:
            self.errors.warn(f"{self._budget.exhausted_reason}: no more arrays are written; everything else continues")
        return saved

    def open(self) -> None:
        """Begin the journal: from here on this process alone writes into the folder.

        Raises:
            UsageError: when another process does.
        """
        if self._documents.journal is not None:
            self._documents.journal.open()

    def write_documents(self, end_of_step: bool) -> bool:
        """Bring the documents up to date, and perhaps end the journal; see ``JsonDocuments.write``."""
        return self._documents.write(end_of_step)

    def close(self) -> None:
        """Release the journal, and leave it where it is if it is still there."""
        if self._documents.journal is not None:
            self._documents.journal.close()

    def discard(self) -> None:
        """Leave nothing of the entries on disk."""
        if self._documents.journal is not None:
            self._documents.journal.remove()


def make_dump_writer(
    folder: str,
    header: dict[str, Any],
    stack_texts: Sequence[Sequence[str]],
    budget: DiskBudget,
    logged_kinds: set[tuple[str, str]],
    has_arrays: bool,
    has_stacks: bool,
    has_journal: bool,
    is_debug: bool,
) -> DumpWriter:
    """Return the writer of one rank folder.

    Args:
        folder: the rank folder.
        header: "task", "level" and further keys that stand before "data" in dump.json.
        stack_texts: the formatted stacks, by number; more may come.
        budget: the bytes that arrays may take.
        logged_kinds: the kinds of errors that were on the log already.
        has_arrays: whether arrays may be written.
        has_stacks: whether stack.json and construct.json are written.
        has_journal: whether every entry is appended to a journal.
        is_debug: whether debug.json is written in place of dump.json.
    """
    arrays = ArrayWriter(folder, budget)
    header = {**header, "framework": "mindspore", "dump_data_dir": arrays.folder if has_arrays else None}
    documents = JsonDocuments(folder, header, stack_texts, has_stacks, journal=has_journal, debug=is_debug)
    return DumpWriter(documents, arrays, budget, ErrorLog(folder, logged_kinds))
