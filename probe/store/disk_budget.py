# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The byte budget for .npy files: the documents, which are small, must always find room."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

#: bytes, and files, kept free for documents, at most; on small disks a third of those that were free at first
_RESERVE, _FILES = 64 << 20, 10_000
#: bytes of a file beside its array: numpy's header, the rest of its last block, its inode
_HEADER, _BLOCK, _INODE = 128, 4096, 512


class _Free:
    """The free bytes or files of a disk, which is looked at rarely; ``most_kept`` are kept, at most."""

    def __init__(self, most_kept: int) -> None:
        self._most_kept, self._kept, self._known, self.found = most_kept, -1, 0, 0

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
        self.most, self._used = most, 0
        self._bytes, self._files = _Free(_RESERVE), _Free(_FILES)
        self.exhausted_reason = ""  # why nothing more may be written, or ""

    def allow(self, most: int | None) -> None:
        """Change how much may be written in all."""
        if most != self.most:
            self.most, self.exhausted_reason = most, ""

    def allows_file(self, folder: str) -> bool:
        """Return whether a file may be made in this folder, or a further name of one, which is a file on some disks.

        Raise OSError when the folder cannot be looked at.
        """
        if not self.exhausted_reason and not self._files.take(1, lambda: _free_files(folder)):
            self.exhausted_reason = f"the disk of {folder} has room for only {self._files.found} more files"
        return not self.exhausted_reason

    def reserve(self, folder: str, size: int) -> bool:
        """Return whether an array of this size may be written to this folder, and count it.

        Raise OSError when the folder cannot be looked at.
        """
        if self.exhausted_reason:
            return False
        size += _HEADER
        if self.most is not None and self._used + size > self.most:
            self.exhausted_reason = f"max_disk of {self.most} bytes is reached"
            return False
        taken = -(-size // _BLOCK) * _BLOCK + _INODE
        if not self._bytes.take(taken, lambda: _free_bytes(folder)):
            self.exhausted_reason = f"the disk of {folder} is nearly full, {self._bytes.found} bytes are free"
            return False
        self._used += size
        return True


def _free_bytes(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _free_files(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_favail if disk.f_files else sys.maxsize  # btrfs has no limit
