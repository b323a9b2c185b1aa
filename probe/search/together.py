# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Starts a command of probe on several ranks, as msrun does: ``python -m probe.search.together N run train.py``.

The ranks of msrun are in sessions of their own, and go on when msrun is killed. These end with the process that started
them.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

#: the kernel sends a signal to the process when the one that started it has ended
_SIGNAL_AT_END_OF_PARENT = 1
_PAUSE = 0.1
#: seconds that the ranks have to end by themselves
_GRACE = 15.0


def end_with_parent() -> Callable[[], None]:
    """Return a function for a new process, which then ends when its parent is killed.

    ``probe try`` and its kin end their own processes too.
    """
    library = ctypes.CDLL(None)
    return functools.partial(library.prctl, _SIGNAL_AT_END_OF_PARENT, signal.SIGTERM)


def main(words: Sequence[str]) -> int:
    """Run the command on each rank; return 0, or the status of the first rank that fails."""
    ranks = int(words[0])
    command = [sys.executable, "-m", "probe", *words[1:]]
    variables = {
        **os.environ,
        "MS_WORKER_NUM": str(ranks),
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(_free_port()),
    }
    for name in ("RANK_ID", "RANK_SIZE"):  # MindSpore gives out the ranks
        variables.pop(name, None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scheduler = _start(command, {**variables, "MS_ROLE": "MS_SCHED"}, is_silent=True)
    workers = [
        _start(command, {**variables, "MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(rank)})
        for rank in range(ranks)
    ]
    try:
        return _status(workers)
    finally:
        for process in (*workers, scheduler):
            if process.poll() is None:
                process.terminate()
        _wait([*workers, scheduler])


def _start(
    command: Sequence[str], variables: dict[str, str], is_silent: bool = False
) -> subprocess.Popen[bytes]:
    output = subprocess.DEVNULL if is_silent else None  # its errors only repeat those of the ranks
    return subprocess.Popen(
        command,
        env=variables,
        stdout=output,
        stderr=output,
        preexec_fn=end_with_parent(),  # noqa: PLW1509 - this process has one thread
    )


def _status(workers: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait until all ranks have ended, or one has failed: the others would wait for it."""
    while True:
        statuses = [worker.poll() for worker in workers]
        failed = next((status for status in statuses if status), 0)
        if failed or None not in statuses:
            return failed
        time.sleep(_PAUSE)


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait for processes that were told to end; kill those that do not."""
    end = time.monotonic() + _GRACE
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(end - time.monotonic(), 0.1))
        if process.poll() is None:
            process.kill()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
