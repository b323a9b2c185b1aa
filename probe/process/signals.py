# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""SIGTERM, its last words, and forks: a forked child does not continue the recording of its parent."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any


class SigtermHandler:
    """Saves a dump when SIGTERM comes, and hands the signal on to the handler that had it before."""

    def __init__(self, finish: Callable[[], None], save: Callable[[], None]) -> None:
        #: write the dump: the process ends, or a handler of the training's decides. Neither raises.
        self._finish = finish
        self._save = save
        self._before: Any = None
        self._installed = self._busy = False

    def install(self) -> None:
        """Take the signal, if that is possible: in the main thread, from a handler that Python knows."""
        before = signal.getsignal(signal.SIGTERM)
        if not self._installed and _in_main_thread() and before not in (None, signal.SIG_IGN):
            self._before = before
            self._installed = True
            signal.signal(signal.SIGTERM, self._on_signal)

    def remove(self) -> None:
        """Give the signal back, unless somebody else has taken it since."""
        if self._installed and _in_main_thread():
            self._installed = False
            if signal.getsignal(signal.SIGTERM) == self._on_signal:
                signal.signal(signal.SIGTERM, self._before)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._busy:  # a handler of the training's that calls the one it found, which is this one
            return
        self._busy = True
        try:
            if callable(self._before):
                self._save()
                self._before(number, frame)
            elif signal.getsignal(signal.SIGTERM) != self._on_signal:
                self._save()  # called by a handler that came later: the signal is its own
            else:
                self._finish()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), number)
        finally:
            self._busy = False


class LastWords:
    """Says something before SIGTERM ends the process, where nobody has a handler for it. The signal ends it as before.

    ``wait`` returns False where nothing may be said now. It then calls the function that it was given later.
    """

    def __init__(self, say: Callable[[], None], wait: Callable[[Callable[[], None]], bool]) -> None:
        self._say = say
        self._wait = wait
        call_in_forked_child(weakref.WeakMethod(self.remove))

    def install(self) -> None:
        """Take the signal if nobody has it; it may be called again, when somebody has given it back."""
        if _in_main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)

    def remove(self) -> None:
        """Give the signal back, unless somebody else has taken it since."""
        if _in_main_thread() and signal.getsignal(signal.SIGTERM) == self._on_signal:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._wait(self._end):
            self._end()

    def _end(self) -> None:
        if not _in_main_thread():  # the signal had to wait for another thread
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self._say()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def call_in_forked_child(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Call a method in every process that is forked from this one, while its object lives."""

    def run() -> None:
        call = method()
        if call is not None:
            call()

    os.register_at_fork(after_in_child=run)
