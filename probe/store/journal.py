# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The journal: every finished entry of a step, in the file system before the next is taken up.

A file begins with ``MAGIC``; then come records, each with its length and CRC-32 before it (little endian, four bytes
each) and JSON text: ``{"header": …, "extra_info": …}`` first, then ``{"name": …, "entry": …, "stack": …, "lines": …,
"construct": …}``. What is damaged or cut off at the end takes
nothing of what stands before it along.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from probe.errors import UsageError
from probe.process.progress import progress
from probe.store import file_io, layout

MAGIC = b"probe journal 1\n"
_FRAME = struct.Struct("<II")


class Journal:
    """Appends to the journal of one rank folder. One process writes it: others find it locked.

    Args:
        folder: the rank folder.
        header: the text of the first record.
    """

    def __init__(self, folder: str, header: str) -> None:
        self._path = os.path.join(folder, layout.JOURNAL)
        self._header = header
        self._file = -1
        self.size = 0

    def open(self) -> None:
        """Begin the journal, unless it is open.

        Raises:
            UsageError: when another process is writing there.
            OSError: when the file cannot be made.
        """
        if self._file >= 0:
            return
        file_io.make_dirs(os.path.dirname(self._path))
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, file_io.FILE_MODE)
        try:
            if not lock(file):
                raise UsageError(another_process(os.path.dirname(self._path)))
            os.ftruncate(file, 0)
            self.size = os.write(file, MAGIC + _framed(self._header))
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def append(self, text: str) -> None:
        """Append a record.

        Raises:
            OSError: when it cannot be written; half of it does not stay.
        """
        if self._file < 0:
            self.open()
        payload = text.encode()
        data = _FRAME.pack(len(payload), zlib.crc32(payload)) + payload
        if os.write(self._file, data) == len(data):  # as nearly always
            self.size += len(data)
        else:
            self._again(data)

    def remove(self) -> None:
        """End the journal: what it held is in the documents."""
        if self._file >= 0:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._path)
            self.close()

    def close(self) -> None:
        """Let go of the file and leave it where it is."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _again(self, data: bytes) -> None:
        """Write a record of which only a part was written, or take that part back."""
        os.ftruncate(self._file, self.size)
        os.lseek(self._file, self.size, os.SEEK_SET)
        if os.write(self._file, data) != len(data):
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self.size += len(data)


def another_process(folder: str) -> str:
    """Return what is said where another process is writing."""
    return (
        f"{folder} is being written by another process. Give each process a rank of its own (start(rank_id=...)) "
        "or a dump_path of its own."
    )


def read(path: str) -> tuple[list[Mapping[str, Any]], str]:
    """Return the records of a journal, the header first, and what is wrong with the rest of it, or "".

    Raises:
        UsageError: when the file is no journal, cannot be read, or a living process still writes it.
    """
    try:
        with open(path, "rb+") as file:
            if not lock(file.fileno()):
                raise UsageError(f"{path} is being written by a living process; there is nothing to recover yet")
            data = file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if MAGIC.startswith(data):  # its process died while it began
        return [], ""
    if not data.startswith(MAGIC):
        raise UsageError(f"{path} is no journal of probe")
    found: list[Mapping[str, Any]] = []
    for place, record in progress(_records(data), "reading the journal"):
        if record is None:
            return found, f"the last {len(data) - place} of {len(data)} bytes were damaged or cut off"
        found.append(record)
    return found, ""


def _records(data: bytes) -> Iterator[tuple[int, Mapping[str, Any] | None]]:
    """Yield where each record begins, and the record, or None where it is damaged."""
    place = len(MAGIC)
    while place < len(data):
        record = _record(data, place)
        yield place, record
        if record is None:
            return
        place += _FRAME.size + _FRAME.unpack_from(data, place)[0]


def _record(data: bytes, place: int) -> Mapping[str, Any] | None:
    start = place + _FRAME.size
    if start > len(data):
        return None
    length, checksum = _FRAME.unpack_from(data, place)
    payload = data[start : start + length]
    if len(payload) < length or zlib.crc32(payload) != checksum:
        return None
    try:
        record = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _framed(text: str) -> bytes:
    payload = text.encode()
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def lock(file: int) -> bool:
    """Take the lock of a file or folder, which goes with the process; return False where another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks
        return True
    return True
