# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The backward entries that have begun, on each thread in the order in which they will end."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable

#: last sequence number, order, what closes the entry
_Open = tuple[int, int, Callable[[], None]]


class OpenBackwardEntries:
    """Closes backward entries when they can receive nothing more."""

    def __init__(self) -> None:
        self._all: list[list[_Open]] = []
        self._thread = _ThreadEntries(self._all)

    def add(self, last_sequence_nr: int, order: int, close: Callable[[], None]) -> None:
        """Add an entry of this thread.

        Args:
            last_sequence_nr: the sequence number of its last node.
            order: of two entries that end at the same node, the inner call was attached first and ends first.
            close: ends the entry.
        """
        bisect.insort(self._thread.entries, (last_sequence_nr, -order, close))

    def advance(self, sequence_nr: int) -> None:
        """Close the entries of this thread that end before this node: the engine runs nodes in falling order."""
        entries = self._thread.entries
        while entries and entries[-1][0] > sequence_nr:
            entries.pop()[2]()

    def flush(self) -> None:
        """Close every entry, on any thread."""
        for entries in self._all:
            while entries:
                entries.pop()[2]()


class _ThreadEntries(threading.local):
    def __init__(self, every: list[list[_Open]]) -> None:
        self.entries: list[_Open] = []
        every.append(self.entries)
