# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""How much of the disk arrays may take: the documents, which are small, must always find room."""

from __future__ import annotations

import os

#: what is kept free for documents, at most; on small disks a third of what was free at first
_RESERVE = 64 << 20
#: what a file takes beside its array: numpy's header, the rest of its last block, its inode
_HEADER, _BLOCK, _INODE = 128, 4096, 512


class DiskBudget:
    """What one process may still write in arrays. Once it has run out, no more arrays are written.

    Args:
        most: the setting ``max_disk``, in bytes.

    Attributes:
        full: why there is no room any more, or "".
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._used = 0
        self._sure = 0  # so much may be written before the disk is looked at again
        self._reserve = -1
        self.full = ""

    def allow(self, most: int | None) -> None:
        """Change how much may be written in all."""
        if most != self.most:
            self.most, self.full = most, ""

    def take(self, folder: str, size: int) -> bool:
        """Return whether an array of this size may be written to this folder, and count it.

        Raises:
            OSError: when the folder cannot be looked at.
        """
        if self.full:
            return False
        size += _HEADER
        if self.most is not None and self._used + size > self.most:
            self.full = f"max_disk of {self.most} bytes is reached"
            return False
        taken = -(-size // _BLOCK) * _BLOCK + _INODE
        if taken > self._sure:
            disk = os.statvfs(folder)
            free = disk.f_bavail * disk.f_frsize
            if self._reserve < 0:
                self._reserve = min(_RESERVE, free // 3)
            if taken > free - self._reserve:
                self.full = f"the disk of {folder} is nearly full, {free} bytes are free"
                return False
            self._sure = max(taken, (free - self._reserve) // 4)
        self._sure -= taken
        self._used += size
        return True
