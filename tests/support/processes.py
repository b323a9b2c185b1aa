# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Programs of the tests, as ``subprocess`` runs them, without a new import of MindSpore for each.

A command that starts with this interpreter is forked from a process that has imported MindSpore (``fork_server``).
Arguments, environment, folder, streams, exit status and signals are as with a process of its own. A program that needs
a fresh interpreter says so: ``fresh="it measures what an import loads"``.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import inspect
import os
import signal
import socket
import subprocess
import sys

import mindspore  # noqa: F401  its import sets variables of the environment

from tests.support import fork_server
from tests.support.paths import ROOT

#: what interpreter and libraries read while they are started and imported: other values need a fresh process
_READ_AT_START = (
    "PYTHON",
    "LD_",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "NPY_",
    "GLOG_",
    "MS_",
    "MINDSPORE_",
    "COVERAGE_",
)
#: the environment of the server
_VARIABLES = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
_SET_CHILD_SUBREAPER = 36


class Popen(subprocess.Popen):
    """A program in a process of its own; see ``subprocess.Popen``.

    Args:
        command: list of the interpreter and its arguments.
        fresh: why the program needs a fresh interpreter, if it does.
        imports: names of modules that the program uses beside MindSpore: it finds them imported. With them, the
            interpreter may be another one.
        options: those of ``subprocess.Popen``.
    """

    def __init__(self, command, *, fresh="", imports=(), **options):
        command = [os.fspath(part) for part in command]
        plain = options.keys() <= {
            "stdin",
            "stdout",
            "stderr",
            "cwd",
            "env",
            "text",
            "errors",
            "start_new_session",
        }
        mine = command[0] == sys.executable or imports
        self.forked = plain and mine and not fresh and _forkable(command, options.get("env"))
        self._imports = tuple(imports)
        super().__init__(command, **options)

    def _execute_child(self, *arguments, **named):
        if not self.forked:
            return super()._execute_child(*arguments, **named)
        given = inspect.signature(super()._execute_child).bind(*arguments, **named).arguments
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = fork_server.Request(
            given["args"][1:],
            os.path.abspath(given["cwd"] or os.getcwd()),
            dict(os.environ if given["env"] is None else given["env"]),
            given["start_new_session"],
            _ignores_interrupts(),
        )
        with _adopting():
            self.pid = request.send(
                _server(given["args"][0], self._imports),
                [number if at < 0 else at for number, at in enumerate(streams)],
            )
        self._child_created = True
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in ends))
        return None


def run(
    command,
    *,
    fresh="",
    imports=(),
    check=False,
    timeout=600,
    capture_output=False,
    input=None,
    **options,
):
    """Run a program to its end; see ``subprocess.run``, and ``Popen`` for ``fresh`` and ``imports``."""
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen(command, fresh=fresh, imports=imports, **options) as process:
        try:
            said = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, *said)
    if check:
        done.check_returncode()
    return done


def _ignores_interrupts():
    """Return whether this process ignores SIGINT. MindSpore changes that too, which Python does not see."""
    with open("/proc/self/status") as file:
        (mask,) = (int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
    return bool(mask >> (signal.SIGINT - 1) & 1)


def _forkable(command, variables):
    """Return whether the server's children are as the process that this command would start."""
    if command[1].startswith("-") and command[1] not in ("-c", "-m"):
        return False
    if variables is None:
        variables = os.environ
    differ = {
        name for name in {*variables, *_VARIABLES} if variables.get(name) != _VARIABLES.get(name)
    }
    return not any(name.startswith(_READ_AT_START) for name in differ - {"PYTHONPATH"})


@contextlib.contextmanager
def _adopting():
    """Make this process the new parent of programs whose parent ends."""
    library = ctypes.CDLL(None)
    assert library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        library.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@functools.cache
def _server(python, imports):
    """Start a server of this process for programs of an interpreter; it ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [python, fork_server.__file__, str(theirs.fileno()), *imports]
    options = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "pass_fds": [theirs.fileno()],
    }
    server = subprocess.Popen(command, cwd=ROOT, env=_VARIABLES, **options)
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # on which the server ends
    return ours
