# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""What one step of one rank leaves on disk. No error of a file gets past here."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.config.settings import Settings
from probe.recording.call import mark
from probe.store.arrays import ArrayWriter
from probe.store.disk_budget import DiskBudget
from probe.store.documents import JsonDocuments
from probe.store.error_log import ErrorLog

if TYPE_CHECKING:
    from probe.recording.call_stacks import CallStacks
    from probe.store.documents import Place

    #: what Documents.entry takes
    Entry = tuple[str, Any, int, list[Place]]


class DumpWriter:
    """The documents with their journal, the arrays and the log of errors of one rank folder.

    Args:
        settings: what is recorded.
        stacks: texts of stacks.
        folder: the rank folder.
        room: how much arrays may take of the disk.
        told: the kinds of errors that were on the log already.
    """

    def __init__(
        self, settings: Settings, stacks: CallStacks, folder: str, room: DiskBudget, told: set[tuple[str, str]]
    ) -> None:
        self._room = room
        self._arrays = ArrayWriter(folder, room)
        self.troubles = ErrorLog(folder, told)
        self.documents = JsonDocuments(
            folder,
            {
                "task": "statistics" if settings.task == "nan_check" else settings.task,
                "level": settings.level,
                "framework": "mindspore",
                "dump_data_dir": self._arrays.folder if settings.saves_arrays else None,
            },
            stacks.texts(),
            settings.extra_info and settings.level != "debug",
            journal=settings.task != "nan_check",
            debug=settings.level == "debug",
        )
        #: tells the rank of this process, while the folder has not its name
        self._rank: Callable[[], int | None] | None = None
        self._unnamed = False

    @property
    def folder(self) -> str:
        """The rank folder."""
        return self.documents.folder

    def entry(self, entry: Entry) -> None:
        """Take a finished entry."""
        try:
            self.documents.entry(*entry)
            if self._rank is not None and (rank := self._rank()) is not None:
                self._rank, self._unnamed = None, True
                self.documents.rank(rank)
        except OSError as error:  # the journal's; the entry is kept for the documents
            self.troubles.report("writing the journal", error)
        except Exception as error:
            self.troubles.report("writing an entry", error, entry[0])
            with contextlib.suppress(Exception):
                self.documents.entry(entry[0], mark(error))

    def array(self, name: str, array: Any) -> str:
        """Write an array and return the name of its file, or "": one that cannot be written leaves its numbers."""
        was_full = self._room.full
        try:
            saved = self._arrays.save(name, array)
        except OSError as error:
            self.troubles.report("writing an array", error)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return ""
            saved, self._room.full = "", "the disk is full"
        if not was_full and self._room.full:
            self.troubles.warn(f"{self._room.full}: no more arrays are written, everything else goes on")
        return saved

    def open(self) -> None:
        """Begin the journal: from here on this process alone writes into the folder.

        Raises:
            UsageError: when another process does.
        """
        if self.documents.journal is not None:
            self.documents.journal.open()

    def await_rank(self, rank: Callable[[], int | None], launched: int | None) -> None:
        """Note in the journal which rank this is, as soon as ``rank`` tells; until then what the launcher said."""
        self._rank, self._unnamed = rank, launched is not None
        if launched is not None:
            self.documents.rank(launched)

    def has_its_name(self) -> None:
        """Note that the folder keeps the name that it has."""
        self._rank, self._unnamed = None, False

    def move(self, folder: str) -> None:
        """Give the folder another name: its rank has become known.

        Raises:
            OSError: when that cannot be; all stays as it is.
        """
        if os.path.isdir(self.folder):
            if os.path.isdir(folder):  # with files of somebody else's, or one would have refused it
                for name in os.listdir(self.folder):
                    os.rename(os.path.join(self.folder, name), os.path.join(folder, name))
                os.rmdir(self.folder)
            else:
                os.rename(self.folder, folder)
        self._arrays.move(folder)
        self.documents.move(folder, self._arrays.folder)
        self.troubles.move(folder)

    def write(self, ends: bool) -> bool:
        """Bring the documents up to date, and end the journal; see ``Documents.write``.

        While the rank is not known the journal stays: it is what tells ``recover`` the name of the folder.
        """
        return self.documents.write(ends and not self._unnamed)

    def close(self) -> None:
        """Let go of the journal, and leave it where it is if it is still there."""
        if self.documents.journal is not None:
            self.documents.journal.close()

    def discard(self) -> None:
        """Leave nothing of the entries on disk."""
        if self.documents.journal is not None:
            self.documents.journal.remove()
