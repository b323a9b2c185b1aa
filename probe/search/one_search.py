# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One search works in a folder at a time: a second start waits for the runs of a killed one, or is refused."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of

_FILE = "lock"
_PAUSE = 0.2
#: seconds in which the runs of a killed search end
PATIENCE = 30.0


@contextlib.contextmanager
def only_search(folder: str, patience: float = PATIENCE) -> Iterator[int]:
    """Hold a folder; yield the descriptor that holds it, which the runs inherit.

    Args:
        folder: the folder of the search.
        patience: seconds to wait for another one to end.

    Raises:
        UsageError: when another search works there, or the folder cannot be written.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        held = os.open(os.path.join(folder, _FILE), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        reason = reason_of(error)
        raise UsageError(say("find.folder", folder=folder, reason=reason)) from None
    try:
        _wait_for(held, folder, time.monotonic() + patience)
        yield held
    finally:
        os.close(held)


def _wait_for(held: int, folder: str, end: float) -> None:
    while not _take(held):
        if time.monotonic() > end:
            raise UsageError(say("find.busy", folder=folder))
        time.sleep(_PAUSE)


def _take(held: int) -> bool:
    """Take the lock if it is free; return whether it was."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
