# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A Dask cluster on this machine: a scheduler and workers, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

from tests.support.paths import environment


@contextlib.contextmanager
def cluster(folder, workers=2, nanny=True, environ=None):
    """Start a scheduler and workers; yield the scheduler's address and the processes of the workers.

    Args:
        folder: for their files.
        workers: how many workers.
        nanny: whether a process restarts a worker that was killed.
        environ: further variables of the workers.
    """
    with contextlib.ExitStack() as stack:
        file = folder / "scheduler.json"

        def start(*arguments, **variables):
            log = stack.enter_context(open(folder / "cluster.log", "a"))
            command = [sys.executable, "-m", "dask", *arguments]
            made = subprocess.Popen(
                command, cwd=folder, env=environment(**variables), stdout=log, stderr=log
            )
            stack.callback(stop, made)
            return made

        scheduler = start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
        address = json.loads(written(file, scheduler))["address"]
        made = [
            start(
                "worker",
                address,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--host",
                "127.0.0.1",
                "--nanny" if nanny else "--no-nanny",
                "--local-directory",
                str(folder / f"worker{number}"),
                **(environ or {}),
            )
            for number in range(workers)
        ]
        yield address, made


def written(file, process):
    """Return the text of a file as soon as a process has written it."""
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if text := file.read_text():
                return text
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError(f"the process ended with {process.returncode} before it wrote {file}")


def stop(process):
    """End a process and wait for its end."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
