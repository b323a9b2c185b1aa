# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells whether the disk was full while a run wrote its dump: then the dump lacks parts, and teaches nothing."""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
from pathlib import Path

from probe.store.file_names import ERRORS

#: a disk with less space than this is full
_LEAST = 4 << 20
_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: a refusal, as tracebacks have it
_REFUSED = re.compile("|".join(rf"\[Errno {number}\]" for number in _NUMBERS))


def is_full(folder: str) -> bool:
    """Return whether the disk of an experiment's folder is full, or has refused a file of its dump."""
    if shutil.disk_usage(folder).free < _LEAST:
        return True
    return any(_tells_refusal(path) for path in Path(folder).rglob(ERRORS))


def _tells_refusal(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return _REFUSED.search(path.read_text("utf-8", "replace")) is not None
    return False
