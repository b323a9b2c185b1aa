# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A program that is forked from the server behaves as one in a process of its own."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.support import processes
from tests.support.paths import environment

pytestmark = pytest.mark.slow

#: programs that show what a process is given and how it ends
PROGRAMS = {
    "arguments": "import sys; print(__name__, sys.argv, sys.path[0])",
    "folder": "import os; print(os.getcwd())",
    "environment": "import os; print(sorted(os.environ.items()))",
    "environment of C": "from ctypes import *; get = CDLL(None).getenv; get.restype = c_char_p; print(get(b'NEW'))",
    "descriptors": "import os; print(len(os.listdir('/proc/self/fd')))",
    "terminals": "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), sys.stdout.name)",
    "buffers": "from sys import stdout as s; print(s.line_buffering, s.encoding, s.errors, s.seekable(), s.mode)",
    "input": "import sys; print(sys.stdin.read().upper())",
    "signals": "import signal; print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPIPE))",
    "parent": "import os; print(os.getpgid(0) == os.getpid(), os.getppid())",
    "error": "def f():\n    return 1 / 0\nf()",
    "error in a thread": "import threading; threading.Thread(target=lambda: 1 / 0, name='t').start()",
    "status": "import sys; sys.exit(7)",
    "status as a text": "import sys; sys.exit('the end')",
    "interrupt": "import sys; sys.excepthook = print; raise KeyboardInterrupt",
    "thread": "import threading, time; threading.Thread(target=lambda: [time.sleep(0.05), print('end')]).start()",
    "atexit": "import atexit; atexit.register(print, 'at exit'); print('before')",
    "end of a module": "class Last:\n    def __del__(self, print=print): print('deleted')\nlast = Last()",
    "error at the end": "class Last:\n    def __del__(self): raise ValueError('late')\nlast = Last()",
    "os._exit": "import os; print('lost', end=''); os._exit(3)",
    "kill": "import os; print('said', flush=True); os.kill(os.getpid(), 9)",
    "abort": "import os; os.abort()",
    "a training": "import mindspore as ms; print(ms.ops.relu(ms.Tensor([1.0, -2.0])), ms.get_context('mode'))",
}


def ran(program, folder, fresh):
    variables = environment(RANK_ID="3", NEW="ä")
    command = [sys.executable, "-c", program, "one", "two words"]
    options = {
        "cwd": folder,
        "env": variables,
        "input": "a line\n",
        "capture_output": True,
        "text": True,
    }
    done = processes.run(command, fresh=fresh, **options)
    return done.returncode, *(
        re.sub("0x[0-9a-f]+", "address", said) for said in (done.stdout, done.stderr)
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forked_program_sees_and_says_what_a_process_of_its_own_does(tmp_path, name):
    assert ran(PROGRAMS[name], tmp_path, "") == ran(
        PROGRAMS[name], tmp_path, "the other side of the comparison"
    )


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.default_int_handler])
def test_a_forked_program_ignores_interrupts_where_its_parent_does(tmp_path, handler, theirs):
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handler)
        if theirs:  # as MindSpore changes it: Python does not see it
            ctypes.CDLL(None).signal(
                int(signal.SIGINT), ctypes.c_void_p(0 if handler == signal.SIG_IGN else 1)
            )
        said = ran(PROGRAMS["signals"], tmp_path, "the other side of the comparison")
        assert ran(PROGRAMS["signals"], tmp_path, "") == said
        assert ("default_int_handler" in said[1]) == ((handler == signal.SIG_IGN) == theirs)
    finally:
        signal.signal(signal.SIGINT, before)


SPAWNS = """
import multiprocessing
def twice(number):
    return 2 * number
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(twice, [21]), __file__)
"""


@pytest.mark.parametrize("words", [["program.py"], ["-m", "program"]])
def test_a_script_and_a_module_are_run_as_python_runs_them(tmp_path, words):
    (tmp_path / "program.py").write_text(SPAWNS)
    command = [sys.executable, *words]
    options = {"cwd": tmp_path, "capture_output": True, "text": True}
    forked, fresh = (processes.run(command, fresh=why, **options) for why in ("", "the other side"))
    assert (forked.returncode, forked.stdout, forked.stderr) == (0, fresh.stdout, "")
    assert forked.stdout.startswith("[42]")


def test_programs_are_forked_unless_they_say_why_not_or_change_a_variable_that_is_read_at_the_start():
    command = [sys.executable, "-c", ""]
    for options, forked in [
        ({}, True),
        ({"env": environment(RANK_ID="1")}, True),
        ({"fresh": "why"}, False),
        ({"env": environment(MKL_PROBE="1")}, False),
    ]:
        with processes.Popen(command, **options) as process:
            assert process.forked is forked
    with processes.Popen([sys.executable, "-W", "error", "-c", ""]) as process:
        assert not process.forked


def test_the_global_state_that_a_program_changes_does_not_reach_the_next():
    change = """
import builtins, os, random, sys, warnings
import mindspore as ms
import numpy as np
builtins.left, os.environ["LEFT"], sys.modules["left"] = 1, "1", sys
warnings.simplefilter("error"); np.random.seed(1); random.seed(1); ms.set_seed(5)
ms.ops.relu = None
ms.set_context(mode=ms.GRAPH_MODE)
os.chdir("/")
"""
    look = """
import builtins, os, sys, warnings
import mindspore as ms
import numpy as np
print(hasattr(builtins, "left"), "LEFT" in os.environ, "left" in sys.modules, ms.get_seed(), ms.ops.relu is None,
      ms.get_context("mode") == ms.GRAPH_MODE, os.getcwd() == "/", len(warnings.filters), np.random.rand() == {})
"""
    draw = "import numpy as np; print(np.random.rand())"

    def run(program):
        return processes.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()

    number = run(draw)
    before = run(look.format(number))
    run(change)
    assert run(look.format(number)) == before
    assert before.startswith("False False False None False")
    assert before.endswith("False")


def test_a_program_that_hangs_is_ended_at_its_limit():
    begun = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run([sys.executable, "-c", "import time; time.sleep(1000)"], timeout=1)
    assert time.monotonic() - begun < 500


def test_signals_reach_a_program_and_its_number_is_its_own():
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    with processes.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as process:
        assert int(process.stdout.readline()) == process.pid
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
