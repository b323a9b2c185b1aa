# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Locks of rank folders, so that two runs never share one."""

from __future__ import annotations

import glob
import os
import shutil

from probe.errors import UsageError
from probe.store import journal, layout

_CRASHED = " That run did not end by itself: `probe recover` makes its last step readable."


class FolderLocks:
    """The rank folders that this process writes, by name; locked for as long as it lives or until ``release``."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def check_unused(self, dump_path: str, name: str, overwrite: bool) -> None:
        """Make sure that no other run's dump of this rank is below ``dump_path``.

        Raises:
            UsageError: when there is one and ``overwrite`` does not allow to replace it, or its process lives.
        """
        pattern = layout.rank_folder(glob.escape(dump_path), "*", name)
        every = sorted(folder for folder in glob.glob(pattern) if os.path.isdir(folder))
        for folder in every:
            if _held(folder) or _held(os.path.join(folder, layout.JOURNAL)):
                raise UsageError(journal.another_process(folder))
        for folder in every:
            _clear(folder, overwrite)
        self._names.add(name)

    def discard(self, name: str) -> None:
        """Take back that a folder is ours: another process was quicker."""
        self._names.discard(name)

    def lock(self, folder: str) -> None:
        """Lock the first folder of a rank, so that no later process takes the run for a finished one."""
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        journal.lock(file)
        self._held.append(file)

    def release(self) -> None:
        """Release all locks: the run is over, or goes on in the parent of this process."""
        while self._held:
            os.close(self._held.pop())


def _held(path: str) -> bool:
    """Return whether a living process holds the lock of a file or folder."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not journal.lock(file)
    finally:
        os.close(file)


def _clear(folder: str, overwrite: bool) -> None:
    """Remove a dump from a folder.

    Raises:
        UsageError: when there is one and ``overwrite`` does not allow it.
    """
    names = os.listdir(folder)
    found = [name for name in names if name in layout.DUMP_FILES or name.endswith(layout.TEMP_SUFFIX)]
    if found and not overwrite:
        raise UsageError(
            f"{folder} holds the dump of another run. Choose another dump_path, remove the folder, "
            f'or set "overwrite": true to replace it.{_CRASHED if layout.JOURNAL in found else ""}'
        )
    for name in found:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
