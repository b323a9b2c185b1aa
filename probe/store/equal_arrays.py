# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Arrays of equal bytes in one step: the second is a hard link to the file of the first."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

    _Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: bytes that are compared at once: so many stay in the processor's cache
_CHUNK = 262144
#: about so many bytes of an array tell which files may be equal to it, and at most so many files are read
_SAMPLES, _MOST_FILES = 64, 4
#: errors of a file system, or of its rules, that allow no links at all
_NO_LINKS = frozenset((errno.EPERM, errno.EACCES, errno.EXDEV, errno.ENOSYS, errno.ENOTSUP))


class _WrittenFile(NamedTuple):
    path: str
    identity: tuple[int, ...]


class EqualArrays:
    """Knows the files of one step by a part of their content, and links equal ones.

    NaN payloads and the sign of zero count, as the bytes are compared. A file that somebody has changed or removed
    since it was written is no partner.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[bytes, bytes], list[_WrittenFile]] = {}
        self._works = True

    def add(self, header: bytes, content: _Bytes, path: str, status: os.stat_result) -> None:
        """Remember a file that was written to its end: its first bytes, the others, and its state after the last."""
        self._files.setdefault(_key(header, content), []).append(_WrittenFile(path, _identity(status)))

    def link(self, header: bytes, content: _Bytes, path: str) -> bool:
        """Make ``path`` a name of an equal file; return False where there is none, or links are impossible."""
        files = self._files.get(_key(header, content), ()) if self._works else ()
        return any(self._link(file, header, content, path) for file in files[-_MOST_FILES:])

    def _link(self, file: _WrittenFile, header: bytes, content: _Bytes, path: str) -> bool:
        try:
            if not _is_equal(file, len(header), content):
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
    """Give a file a further name."""
    try:
        os.link(path, name)
    except FileExistsError:  # of an older dump
        os.remove(name)
        os.link(path, name)


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns


def _is_equal(file: _WrittenFile, start: int, content: _Bytes) -> bool:
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
            # a bytearray is compared at the speed of memory, an array or bytes several times slower
            if os.preadv(handle, [buffer], start + begin) != part.size or buffer != part.data:
                return False
        return True
    finally:
        os.close(handle)
