# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The byte budget for .npy files: the documents, which are small, must always find room."""

from __future__ import annotations

import os

#: bytes kept free for documents, at most; on small disks a third of the bytes that were free at first
_RESERVE = 64 << 20
#: bytes of a file beside its array: numpy's header, the rest of its last block, its inode
_HEADER, _BLOCK, _INODE = 128, 4096, 512


class DiskBudget:
    """Byte budget of one process for arrays. Once it is exhausted, no more arrays are written.

    Args:
        most: the setting ``max_disk``, in bytes.

    Attributes:
        exhausted_reason: why nothing more may be written, or "".
    """

    def __init__(self, most: int | None) -> None:
        self.most, self._used = most, 0
        self._known_free = 0  # so much may be written before the disk is looked at again
        self._reserve = -1
        self.exhausted_reason = ""

    def allow(self, most: int | None) -> None:
        """Change how much may be written in all."""
        if most != self.most:
            self.most, self.exhausted_reason = most, ""

    def reserve(self, folder: str, size: int) -> bool:
        """Return whether an array of this size may be written to this folder, and count it.

        Raises:
            OSError: when the folder cannot be looked at.
        """
        if self.exhausted_reason:
            return False
        size += _HEADER
        if self.most is not None and self._used + size > self.most:
            self.exhausted_reason = f"max_disk of {self.most} bytes is reached"
            return False
        taken = -(-size // _BLOCK) * _BLOCK + _INODE
        if taken > self._known_free:
            disk = os.statvfs(folder)
            free = disk.f_bavail * disk.f_frsize
            if self._reserve < 0:
                self._reserve = min(_RESERVE, free // 3)
            if taken > free - self._reserve:
                self.exhausted_reason = f"the disk of {folder} is nearly full, {free} bytes are free"
                return False
            self._known_free = max(taken, (free - self._reserve) // 4)
        self._known_free -= taken
        self._used += size
        return True
