# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The ends of a process that it does not choose itself: SIGTERM, and a fork, which ends what is only the parent's."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any


class Termination:
    """Finishes a dump when SIGTERM comes, and hands the signal on to whoever had it before.

    Args:
        finish: ends the recording and writes what there is. Never raises.
    """

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish = finish
        self._before: Any = None
        self._installed = False

    def install(self) -> None:
        """Take the signal, where that is possible: in the main thread, from a handler that Python knows."""
        if self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._before = signal.getsignal(signal.SIGTERM)
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._on_signal)
            self._installed = True

    def remove(self) -> None:
        """Give the signal back, unless somebody else has taken it since."""
        if not self._installed or threading.current_thread() is not threading.main_thread():
            return
        self._installed = False
        if signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        before = self._before
        self._finish()
        self.remove()
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            os.kill(os.getpid(), number)


def in_children(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Call a method in every process that is forked from this one, while its object lives."""

    def run() -> None:
        call = method()
        if call is not None:
            call()

    os.register_at_fork(after_in_child=run)
