# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs a script on several ranks with MindSpore's own launcher, within a time limit: asymmetric failures hang it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.support import processors
from tests.support.paths import LONG_SILENCE, ROOT, environment

PROGRAMS = ROOT / "tests" / "programs" / "ranks"


def launch(script, ranks, folder, *arguments, limit=600, dies=False, python=sys.executable):
    """Run a script of tests/programs/ranks on so many ranks, by this interpreter; return the texts of their logs.

    Raises:
        AssertionError: when it fails (or, with ``dies``, when it does not) or hangs; the logs are in the message.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    binaries = os.path.dirname(python)
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    # A rank that is to die must be missed, or the other ranks wait for it.
    silence = {} if dies else LONG_SILENCE
    variables = environment(PATH=path, **silence)
    for name in ("RANK_ID", "RANK_SIZE"):
        variables.pop(name, None)
    command = [
        os.path.join(binaries, "msrun"),
        f"--worker_num={ranks}",
        f"--local_worker_num={ranks}",
    ]
    command += [
        f"--master_port={port}",
        f"--log_dir={folder / 'log'}",
        "--join=True",
        "--cluster_time_out=300",
    ]
    command += [str(PROGRAMS / script), str(folder), *map(str, arguments)]
    with open(folder / "launcher.txt", "w") as output, processors.all_of_them():
        job = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=variables)
        try:
            code = job.wait(limit)
        except subprocess.TimeoutExpired:
            code = f"none: it hung for {limit} seconds"
            job.send_signal(
                signal.SIGINT
            )  # on which it kills the ranks, which are in sessions of their own
            try:
                job.wait(20)
            except subprocess.TimeoutExpired:
                job.kill()
    logs = [folder / "log" / f"worker_{rank}.log" for rank in range(ranks)]
    texts = [log.read_text(errors="replace") if log.exists() else "" for log in logs]
    said = [[line for line in text.splitlines() if "[WARNING]" not in line][-25:] for text in texts]
    lines = "\n".join(line for tail in said for line in tail)
    assert code == int(dies), (
        f"exit code {code}\n{(folder / 'launcher.txt').read_text()[-1500:]}\n{lines}"
    )
    return texts
