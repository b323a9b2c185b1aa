# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Times the commands of a contributor in fresh clones, alone on the machine or beside other work.

    python -m tests.programs.rounds check test ci [--times 3] [--busy] [--folder FOLDER]

Alone, a command runs so many times, one after the other. With ``--busy`` all run at once, each in a clone of its own,
beside four processes that never wait.

A clone has what is committed. Its environments are made before the clock starts, and stay for the next call. What a
command prints goes into a file of the folder. Exit status 1: a command failed.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.paths import ROOT

COMMANDS = {"check": ["make", "check"], "test": ["make", "test"], "ci": ["bash", ".ci/run"]}
ENVIRONMENTS = (".venv", ".venv-oldest", ".peer", ".axe")
#: a process whose four children never wait; all are one session, as a program of another terminal is.
#: It ends when its input does, so with this program, even where this one is killed
BUSY = """
import os
children = [os.fork() for _ in range(4) if os.getpid() == os.getsid(0)]
if os.getpid() != os.getsid(0):
    while os.getppid() == os.getsid(0):  # they end with it
        pass
else:
    os.read(0, 1)
"""


def prepare(clone, command):
    """Bring what is committed into the clone as if it were fresh, and make the environments that are out of date."""
    if not clone.exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "fetch", "-q", "origin"], cwd=clone, check=True)
    subprocess.run(
        ["git", "checkout", "-q", "--force", "--detach", "origin/HEAD"], cwd=clone, check=True
    )
    kept = [option for name in ENVIRONMENTS for option in ("-e", f"/{name}")]
    subprocess.run(["git", "clean", "-xfdq", *kept], cwd=clone, check=True)
    ready = [f"{name}/ready" for name in ENVIRONMENTS[: 3 if command == "ci" else 1]]
    subprocess.run(["make", "-s", *ready, "browser"], cwd=clone, check=True)


def run(clone, command, beside):
    """Run a command in a clone; print how it ended, and return whether it passed."""
    here = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "MAKE", "MFLAGS"))
    }
    git = ["git", "describe", "--always"]
    version = subprocess.run(
        git, cwd=clone, check=True, capture_output=True, text=True
    ).stdout.strip()
    begun, clock = datetime.datetime.now(), time.monotonic()
    log = clone.parent / f"{begun:%Y-%m-%dT%H.%M.%S}-{command}-{clone.name}.txt"
    with open(log, "w") as file:
        # a session of its own, as in another terminal: the kernel shares out time between sessions
        streams = {"stdout": file, "stderr": subprocess.STDOUT, "start_new_session": True}
        done = subprocess.run(COMMANDS[command], cwd=clone, env=here, check=False, **streams)
    minutes = (time.monotonic() - clock) / 60
    result = f"exit status {done.returncode}, {minutes:.1f} minutes {beside}, {version}"
    print(f"{begun:%Y-%m-%d %H:%M} {command}: {result}, {log}", flush=True)
    return done.returncode == 0


@contextlib.contextmanager
def busy_processes():
    """Keep all processors busy."""
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as other:
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
    arguments.folder.mkdir(exist_ok=True)
    passed = []
    for command in arguments.commands:
        if arguments.busy:
            clones = [arguments.folder / f"clone{number}" for number in range(arguments.times)]
            for clone in clones:
                prepare(clone, command)
            beside = f"beside four busy processes, {len(clones)} at once"
            with busy_processes(), ThreadPoolExecutor(len(clones)) as runs:
                passed += runs.map(run, clones, [command] * len(clones), [beside] * len(clones))
        else:
            for _ in range(arguments.times):
                prepare(arguments.folder / "clone0", command)
                passed.append(run(arguments.folder / "clone0", command, "alone"))
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
