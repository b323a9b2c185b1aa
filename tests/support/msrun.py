# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs programs on several ranks with MindSpore's own launcher, within a time limit: asymmetric failures hang it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support import processors
from tests.support.paths import LONG_SILENCE, environment

_PAUSE = 0.1
#: seconds that the launcher has to end by itself, after a rank has crashed and after it was told to end
_GRACE = 20
_CRASH = re.compile(r"Worker process \d+ exit with exception\. Error code: -(\d+)\.")
#: a rank prints it when MindSpore ends its connections, behind all of the program and the last words of probe
_IS_OVER = "Event base dispatch success!"


@dataclass(frozen=True)
class Job:
    """A job of several ranks that has ended.

    Attributes:
        status: the exit status of the launcher, or in words why there is none.
        said: what the launcher printed.
        logs: what each rank printed.
    """

    status: int | str
    said: str
    logs: list[str]

    def words(self):
        """Return the status and the last words of all, for the message of an error."""
        last = [[line for line in log.splitlines() if "[WARNING]" not in line] for log in self.logs]
        lines = "\n".join(line for log in last for line in log[-25:])
        return f"exit status {self.status}\n{self.said[-1500:]}\n{lines}"


def run(ranks, folder, *words, log="log", dies=False, limit=600, python=sys.executable):
    """Run a program on so many ranks, with a folder as its working folder.

    A rank of MindSpore crashes now and then while MindSpore ends its connections, when the program and probe have
    ended. The launcher may then wait without an end for its scheduler. Such a job counts as one that has ended well.

    Args:
        words: the program and its arguments, as of ``python``.
        log: the folder of the logs, seen from the working folder.
        dies: whether a rank is to die: the others must miss it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    binaries = os.path.dirname(python)
    command = [
        os.path.join(binaries, "msrun"),
        f"--worker_num={ranks}",
        f"--local_worker_num={ranks}",
        f"--master_port={_free_port()}",
        f"--log_dir={folder / log}",
        "--join=True",
        "--cluster_time_out=300",
        *map(str, words),
    ]
    said = folder / "launcher.txt"
    with open(said, "w") as output, processors.all_of_them():
        job = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=folder, env=_variables(binaries, dies)
        )
        status = _wait(job, said, time.monotonic() + limit, dies)
    paths = [folder / log / f"worker_{rank}.log" for rank in range(ranks)]
    logs = [path.read_text(errors="replace") if path.exists() else "" for path in paths]
    text = said.read_text(errors="replace")
    if not dies and _CRASH.search(text) and all(_IS_OVER in one for one in logs):
        print(f"MindSpore crashed at the end of a rank: {folder}", file=sys.stderr)
        status = 0
    return Job(status, text, logs)


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _variables(binaries, dies):
    # A rank that is to die must be missed, or the other ranks wait for it.
    silence = {} if dies else LONG_SILENCE
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    found = environment(PATH=path, PYTHONFAULTHANDLER="1", **silence)
    for name in ("RANK_ID", "RANK_SIZE"):
        found.pop(name, None)
    return found


def _wait(job, said, end, dies):
    """Wait for the launcher; end it when the time is up, or a rank has crashed that was not to die."""
    reason = "none: it hung"
    while job.poll() is None and time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(_PAUSE)
        crash = None if dies else _CRASH.search(said.read_text(errors="replace"))
        if crash is not None and not reason.endswith(crash[1]):
            reason = f"none: a rank ended with signal {crash[1]}"
            end = min(end, time.monotonic() + _GRACE)
    if job.poll() is not None:
        return job.returncode
    job.send_signal(signal.SIGINT)  # it kills the ranks, which are in sessions of their own
    try:
        job.wait(_GRACE)
    except subprocess.TimeoutExpired:
        job.kill()
    return reason
