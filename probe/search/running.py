# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs a command of probe as a process of its own, until it ends, has done enough, or the budget is used up."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from probe.errors import UsageError
from probe.search import together

_PAUSE = 0.1
#: seconds that a command has to end by itself, with the processes that it started
_GRACE = 20.0
#: the last line of a traceback, or of wrong use
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b|\S+: error: ")


@dataclass(frozen=True)
class Done:
    """A process that has ended.

    Attributes:
        status: its exit status; None where it was ended.
        seconds: how long it took.
        words: the last line that it has printed.
        has_enough: whether it was ended as it had done enough.
    """

    status: int | None
    seconds: float
    words: str
    has_enough: bool = False

    @property
    def is_killed(self) -> bool:
        """Whether somebody else has killed it."""
        return self.status == -signal.SIGKILL

    @property
    def is_cut(self) -> bool:
        """Whether the budget has ended it."""
        return self.status is None and not self.has_enough


def run(
    words: Sequence[str],
    folder: str,
    log: str,
    deadline: float,
    enough: Callable[[], bool] = lambda: False,
    ranks: int = 1,
    held: Sequence[int] = (),
    variables: Mapping[str, str] | None = None,
) -> Done:
    """Run a command of probe.

    Args:
        words: the words behind ``probe``.
        folder: its working folder.
        log: the file of its output; its standard output alone goes to the same name with ".out".
        deadline: the moment of ``time.monotonic`` at which it is ended.
        enough: whether it has done enough.
        ranks: how many processes train together.
        held: descriptors that it inherits, and holds until its end.
        variables: further variables of its environment.

    Raises:
        OSError: when it cannot be started, or the log cannot be written.
    """
    begin = time.monotonic()
    has_enough = False
    with open(log, "wb") as errors, open(f"{log}.out", "wb") as output:
        process = subprocess.Popen(
            _command(words, ranks),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            pass_fds=held,
            env={**os.environ, **(variables or {}), "PYTHONPATH": _paths()},
            preexec_fn=together.end_with_parent(),  # noqa: PLW1509 - this process has one thread
        )
        try:
            while process.poll() is None and not has_enough and time.monotonic() < deadline:
                time.sleep(_PAUSE)
                has_enough = enough()
            status = process.poll()
        finally:
            _end(process)
    return Done(status, time.monotonic() - begin, _last_line(log), has_enough)


def _command(words: Sequence[str], ranks: int) -> list[str]:
    """Return the command: probe itself, or its start on several ranks."""
    module = ["probe"] if ranks == 1 else [together.__name__, str(ranks)]
    return [sys.executable, "-m", *module, *words]


def _paths() -> str:
    """Return PYTHONPATH with absolute folders: the process works in another one."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(os.path.abspath(path) for path in given.split(os.pathsep) if path)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it has started."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(log: str) -> str:
    """Return the line that says how a program has ended: its last error, else the last line that it has printed."""
    lines: list[str] = []
    for path in (f"{log}.out", log):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines += [line.strip() for line in file if line.strip()]
    errors = [line for line in lines if _ERROR.match(line)]
    last = next(reversed(errors or lines), "")
    return last.removeprefix(f"{UsageError.__module__}.{UsageError.__qualname__}: ")
