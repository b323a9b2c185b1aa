# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Long work shows how far it is on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from probe.store.journal import Journal
from tests.support import processes

pytestmark = pytest.mark.slow

#: so many entries take well over two seconds
MANY = 600_000


@pytest.fixture
def crashed(tmp_path):
    journal = Journal(
        str(tmp_path), json.dumps({"header": {"task": "statistics"}, "extra_info": True})
    )
    for number in range(MANY):
        journal.append(
            f'{{"name":"Functional.relu.{number}.forward","entry":{{"input_args":[],"output":[null]}}}}'
        )
    journal.close()
    return tmp_path


def _recover(folder, terminal):
    command = [sys.executable, "-m", "probe", "recover", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if not terminal:
        done = processes.run(command, capture_output=True, text=True, check=True, env=environment)
        return done.stdout, done.stderr
    master, slave = pty.openpty()
    fcntl.ioctl(
        slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0)
    )  # or it has no room for a line
    with processes.Popen(
        command, stdout=subprocess.PIPE, stderr=slave, text=True, env=environment
    ) as process:
        os.close(slave)
        shown = b""
        try:
            while block := os.read(master, 4096):
                shown += block
        except OSError:  # the other end is closed
            pass
        out = process.stdout.read()
    os.close(master)
    return out, shown.decode()


@pytest.mark.thorough
def test_recover_shows_its_progress_on_a_terminal(crashed):
    out, shown = _recover(crashed, terminal=True)
    assert f"{MANY} entries recovered" in out
    assert "probe: reading the journal" in shown


@pytest.mark.thorough
def test_recover_shows_no_progress_in_a_pipe(crashed):
    out, shown = _recover(crashed, terminal=False)
    assert f"{MANY} entries recovered" in out
    assert shown == ""


def test_progress_starts_no_thread_and_has_no_lock_that_processes_share(tmp_path):
    """A child that is killed while it writes must not hold up its parent, nor may a thread be left."""
    code = """
import sys, threading
sys.stderr.isatty = lambda: True
from probe.process.progress import progress
import tqdm
assert list(progress([1, 2], "writing")) == [1, 2]
print(threading.active_count(), hasattr(tqdm.tqdm, "_lock"), tqdm.tqdm.monitor)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = processes.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split() == ["1", "False", "None"]
