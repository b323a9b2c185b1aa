# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Times the commands of a contributor in a fresh clone, alone on the machine or beside four busy processes.

    python -m tests.programs.rounds check test ci [--times 3] [--busy] [--folder FOLDER]

The clone has what is committed. Its environments are made before the clock starts, and stay for the next call.
What a command prints goes into a file of the folder. Exit status 1: a command failed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.paths import ROOT

COMMANDS = {"check": ["make", "check"], "test": ["make", "test"], "ci": ["bash", ".ci/run"]}
ENVIRONMENTS = (".venv", ".venv-oldest", ".peer", ".axe")
#: a process whose four children never wait; all are one session, as a program of another terminal is
BUSY = """
import os, signal
children = [os.fork() for _ in range(4) if os.getpid() == os.getsid(0)]
if os.getpid() != os.getsid(0):
    while os.getppid() == os.getsid(0):  # they end with it
        pass
else:
    signal.pause()
"""


def prepare(clone):
    """Bring what is committed into the clone, and make the environments that are out of date."""
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "fetch", "-q", "origin"], cwd=clone, check=True)
    subprocess.run(["git", "checkout", "-q", "--force", "--detach", "origin/HEAD"], cwd=clone, check=True)
    subprocess.run(["make", "-s", *(f"{name}/ready" for name in ENVIRONMENTS[:3]), "browser"], cwd=clone, check=True)


def clean(clone):
    """Remove what a run left: the next one begins as in a fresh clone."""
    kept = [option for name in ENVIRONMENTS for option in ("-e", f"/{name}")]
    subprocess.run(["git", "clean", "-xfdq", *kept], cwd=clone, check=True)


@contextlib.contextmanager
def other_work(busy):
    """Keep both processors busy with four processes, if asked."""
    if not busy:
        yield
        return
    with subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True) as other:
        try:
            yield
        finally:
            other.kill()


def main():
    """Fail unless each command passes each time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", choices=list(COMMANDS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "probe_rounds")
    arguments = parser.parse_args()
    clone = arguments.folder / "clone"
    arguments.folder.mkdir(exist_ok=True)
    prepare(clone)
    version = subprocess.run(["git", "describe", "--always"], cwd=clone, check=True, capture_output=True, text=True)
    beside = "beside four busy processes" if arguments.busy else "alone"
    here = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MAKE", "MFLAGS"))}
    failed = False
    for command in arguments.commands:
        for _ in range(arguments.times):
            clean(clone)
            begun, clock = datetime.datetime.now(), time.monotonic()
            log = arguments.folder / f"{command}-{begun:%Y-%m-%dT%H.%M.%S}.txt"
            with other_work(arguments.busy), open(log, "w") as file:
                done = subprocess.run(COMMANDS[command], cwd=clone, stdout=file, stderr=file, env=here, check=False)
            minutes = (time.monotonic() - clock) / 60
            failed = failed or done.returncode != 0
            result = f"exit status {done.returncode}, {minutes:.1f} minutes {beside}, {version.stdout.strip()}"
            print(f"{begun:%Y-%m-%d %H:%M} {command}: {result}, {log}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
