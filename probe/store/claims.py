# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Two runs never share a folder."""

from __future__ import annotations

import glob
import os
import shutil

from probe.errors import UsageError
from probe.store import folders, journal

_CRASHED = " That run did not end by itself: `probe recover` makes its last step readable."


def claim(dump_path: str, rank: int | None, overwrite: bool) -> None:
    """Make sure that no other run's dump of this rank is below ``dump_path``.

    Raises:
        UsageError: when there is one and ``overwrite`` does not allow to replace it, or its process lives.
    """
    pattern = folders.rank_folder(glob.escape(os.path.abspath(dump_path)), "*", rank)
    for folder in sorted(glob.glob(pattern)):
        found = [name for name in folders.OURS if os.path.lexists(os.path.join(folder, name))]
        if not found:
            continue
        if folders.JOURNAL in found and journal.held(os.path.join(folder, folders.JOURNAL)):
            raise UsageError(journal.another_process(folder))
        if not overwrite:
            raise UsageError(
                f"{folder} holds the dump of another run. Choose another dump_path, remove the folder, "
                f'or set "overwrite": true to replace it.{_CRASHED if folders.JOURNAL in found else ""}'
            )
        for name in found:
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)
