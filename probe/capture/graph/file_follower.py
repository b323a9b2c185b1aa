# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A thread that sends the events of files while a step runs: a killed process has them in its journal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

#: the seconds between two looks at the folder
_PAUSE = 0.01


class FileFollower:
    """Calls a function again and again on a thread of its own. A forked child has no such thread."""

    def __init__(self, send: Callable[[], None]) -> None:
        self._send = send  # sends the events of the files that have arrived
        self._thread: threading.Thread | None = None
        self._goes_on = False

    def start(self) -> None:
        """Begin to follow, if it has not begun."""
        if self._thread is None:
            self._goes_on = True
            self._thread = threading.Thread(target=self._run, name="probe follows the files of graphs", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Follow no more; return when the thread has ended."""
        thread, self._thread = self._thread, None
        self._goes_on = False  # no lock: a forked child may stop it too
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while self._goes_on:
            self._send()
            time.sleep(_PAUSE)
