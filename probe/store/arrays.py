# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The .npy files of one rank folder; those of equal bytes in one step are hard links to one file.

They have a budget of bytes: the documents, which are small, must always find room. ``DumpWriter`` writes all files of a
rank; no error of a file gets past it.
"""

from __future__ import annotations

import csv
import errno
import functools
import hashlib
import io
import itertools
import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from probe.entry import Entry
from probe.findings.sentence import Sentence
from probe.naming import clean
from probe.store import file_io, file_names
from probe.store.documents import JsonDocuments
from probe.store.error_log import ErrorLog

_LONGEST = 255
_ENDING = ".npy"
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_CHUNK = 262144  # bytes that are compared at once: so many stay in the processor's cache
#: about so many bytes of an array tell which files may be equal to it, and at most so many files are read
_SAMPLES = 64
_MOST_FILES = 4
#: errors of a file system, or of its rules, that allow no links at all
_NO_LINKS = frozenset((errno.EPERM, errno.EACCES, errno.EXDEV, errno.ENOSYS, errno.ENOTSUP))
#: bytes of the copies of arrays that are kept: comparing with a copy costs a third of comparing with its file
_MOST_KEPT = 16 << 20
#: bytes, and files, kept free for documents, at most; on small disks a third of those that were free at first
_RESERVE = 64 << 20
_FILES = 10_000
#: bytes of a file beside its array: numpy's header, the rest of its last block, its inode
_HEADER = 128
_BLOCK = 4096
_INODE = 512
_log = logging.getLogger("probe")
# findings of one step on the log, and in its file
_MOST_LOGGED = 10
_MOST_TOLD = 1000


class ArrayWriter:
    """Writes arrays below one folder; over-long names are shortened and listed in mapping.csv."""

    def __init__(self, folder: str, budget: DiskBudget, link_equal: bool = True) -> None:
        self.folder = os.path.join(folder, file_names.ARRAYS)  # made with the first array
        self.budget = budget
        self._equal = EqualArrays() if link_equal else None  # arrays of equal bytes share one file
        self._made = False
        self._names = set[str]()

    def save(self, name: str, array: np.ndarray) -> tuple[str, object]:  # type: ignore[type-arg]  # any dtype
        """Write an array in its own dtype; return the name of its file, and the one file of all equal arrays.

        The name is "" where there is no room for it. Raise OSError when it cannot be written; no part of it stays.
        """
        if not self._made:
            file_io.make_dirs(self.folder)
            self._made = True
        name = self._unused(clean(name).replace("/", "_")) + _ENDING
        file_name = name if len(name) <= _LONGEST else _short(name)
        file = self._link_or_write(f"{self.folder}/{file_name}", np.asarray(array, order="C"))
        if file is None:
            return "", None
        if file_name != name:
            row = io.StringIO()
            csv.writer(row, lineterminator="\n").writerow([file_name, name])
            file_io.append(os.path.join(self.folder, file_names.MAPPING), row.getvalue())
        return file_name, file

    def _unused(self, name: str) -> str:
        """Return a name that no array of the step has yet: the keys "a b" and "a_b" would have the same."""
        numbers = itertools.count(2)
        found = name
        while found in self._names:
            found = f"{name}.{next(numbers)}"
        self._names.add(found)
        return found

    def _link_or_write(self, path: str, array: np.ndarray) -> WrittenFile | None:  # type: ignore[type-arg]  # numpy has no types for it
        header = _header(array.dtype, array.shape)
        content = array.reshape(-1).view(np.uint8)
        if not self.budget.allows_file(self.folder):
            return None
        file = None if self._equal is None else self._equal.link(header, content, path)
        if file is None and self.budget.reserve(self.folder, array.nbytes):
            file = WrittenFile(path, _identity(file_io.write(path, header, content.data)))
            if self._equal is not None:
                self._equal.add(header, content, file)
        return file


def _short(name: str) -> str:
    digest = hashlib.sha256(name[: -len(_ENDING)].encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - len(_ENDING) - len(digest) - 1]}.{digest}{_ENDING}"


@functools.lru_cache(4096)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the first bytes of a file, which arrays of one dtype and shape share."""
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)  # type: ignore[no-untyped-call]  # numpy has no types for it
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(text, fields)  # type: ignore[no-untyped-call]  # numpy has no types for it
    return text.getvalue()


@dataclass(eq=False)
class WrittenFile:
    """A file that was written to its end."""

    path: str
    identity: tuple[int, ...]  # its state after the last byte
    copy: bytearray | None = None  # of its array, while it is kept


class EqualArrays:
    """Knows the files of one step by a part of their content, and links equal ones.

    NaN payloads and the sign of zero count, as the bytes are compared. A file that somebody has changed or removed
    since it was written is no partner.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[bytes, bytes], list[WrittenFile]] = {}
        self._works = True
        self._kept = deque[WrittenFile]()  # those with a copy, the oldest first
        self._bytes = 0  # bytes of the copies

    def add(self, header: bytes, content: _Bytes, file: WrittenFile) -> None:
        """Remember a file, its first bytes and the others."""
        self._files.setdefault(_key(header, content), []).append(file)
        if content.size > _MOST_KEPT:
            return
        self._bytes += content.size
        while self._bytes > _MOST_KEPT and self._kept:
            oldest = self._kept.popleft()
            self._bytes -= len(oldest.copy or b"")
            oldest.copy = None
        file.copy = bytearray(content.data)
        self._kept.append(file)

    def link(self, header: bytes, content: _Bytes, path: str) -> WrittenFile | None:
        """Make ``path`` a name of an equal file and return this; None where there is none, or links are impossible."""
        files = self._files.get(_key(header, content), ()) if self._works else ()
        return next(
            (file for file in files[-_MOST_FILES:] if self._link(file, header, content, path)), None
        )

    def _link(self, file: WrittenFile, header: bytes, content: _Bytes, path: str) -> bool:
        copy = file.copy
        try:
            # a bytearray is compared at the speed of memory, an array or bytes several times slower
            if not (
                _is_equal(file, len(header), content) if copy is None else copy == content.data
            ):
                return False
            if file.path != path:
                _name_too(file.path, path)
            return _identity(os.stat(path)) == file.identity
        except OSError as error:  # the array is written instead
            self._works = error.errno not in _NO_LINKS
            return False


def _key(header: bytes, content: _Bytes) -> tuple[bytes, bytes]:
    return header, content[:: max(content.size // _SAMPLES, 1)].tobytes()


def _name_too(path: str, name: str) -> None:
    try:
        os.link(path, name)
    except FileExistsError:  # of an older dump
        os.remove(name)
        os.link(path, name)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns


def _is_equal(file: WrittenFile, start: int, content: _Bytes) -> bool:
    """Return whether a file still is as it was written, and holds this content after its header."""
    handle = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if _identity(os.fstat(handle)) != file.identity:
            return False
        buffer = bytearray(min(content.size, _CHUNK))
        for begin in range(0, content.size, _CHUNK):
            part = content[begin : begin + _CHUNK]
            if part.size < len(buffer):
                del buffer[part.size :]
            if os.preadv(handle, [buffer], start + begin) != part.size or buffer != part.data:
                return False
        return True
    finally:
        os.close(handle)


class _Free:
    """The free bytes or files of a disk, which is looked at rarely; ``most_kept`` are kept, at most."""

    def __init__(self, most_kept: int) -> None:
        self._most_kept = most_kept
        self._kept = -1
        self._known = 0
        self.found = 0

    def take(self, count: int, look: Callable[[], int]) -> bool:
        """Take some; return False where too few are left."""
        if count > self._known:
            self.found = look()
            if self._kept < 0:
                self._kept = min(self._most_kept, self.found // 3)
            if count > self.found - self._kept:
                return False
            self._known = max(count, (self.found - self._kept) // 4)
        self._known -= count
        return True


class DiskBudget:
    """Byte budget, ``max_disk``, of one process for arrays. Once it is exhausted, no more arrays are written."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._used = 0
        self._bytes = _Free(_RESERVE)
        self._files = _Free(_FILES)
        self.exhausted_reason = ""  # why nothing more may be written, or ""

    def allow(self, most: int | None) -> None:
        """Change how much may be written in all."""
        if most != self.most:
            self.most = most
            self.exhausted_reason = ""

    def allows_file(self, folder: str) -> bool:
        """Return whether a file may be made in this folder, or a further name of one. A look may raise OSError."""
        # a further name is a file on some disks
        if not self.exhausted_reason and not self._files.take(1, lambda: _free_files(folder)):
            self.exhausted_reason = (
                f"the disk of {folder} has room for only {self._files.found} more files"
            )
        return not self.exhausted_reason

    def reserve(self, folder: str, size: int) -> bool:
        """Return whether an array of this size may be written, and count it; a look at the folder may raise OSError."""
        if self.exhausted_reason:
            return False
        size += _HEADER
        if self.most is not None and self._used + size > self.most:
            self.exhausted_reason = f"max_disk of {self.most} bytes is reached"
            return False
        taken = -(-size // _BLOCK) * _BLOCK + _INODE
        if not self._bytes.take(taken, lambda: _free_bytes(folder)):
            self.exhausted_reason = (
                f"the disk of {folder} is nearly full, {self._bytes.found} bytes are free"
            )
            return False
        self._used += size
        return True


def _free_bytes(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _free_files(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_favail if disk.f_files else sys.maxsize  # btrfs has no limit


class DumpWriter:
    """Writes one rank folder."""

    def __init__(self, documents: JsonDocuments, arrays: ArrayWriter, errors: ErrorLog) -> None:
        self.documents = documents
        self._arrays = arrays
        self.errors = errors
        self.folder = documents.folder
        self._told = 0
        self.accept = documents.accept
        self.has_parent = documents.has_construct
        self.close = documents.journal.close  # leaves the journal where it is, if it is still there
        self.discard = documents.journal.remove  # leaves nothing of the entries on disk

    def draft(self, entry: Entry) -> None:
        """Append an entry that is not finished to the journal."""
        self.documents.draft(
            entry.name, entry.parts, -1 if entry.is_backward else entry.stack, entry.parents
        )

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
            self.errors.warn(
                f"{budget.exhausted_reason}: no more arrays are written; everything else continues"
            )
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
