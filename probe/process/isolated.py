# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One process that may crash or hang. It gets requests and gives answers, a line of JSON each."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pkgutil
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from probe.findings.sentence import Sentence

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from probe.process.isolated import run; run()"
_OF_A_LAUNCHER = frozenset(
    "RANK_ID RANK_SIZE MS_ROLE MS_NODE_ID MS_WORKER_NUM OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE".split()
)
#: of faulthandler: the innermost frame of a process that crashed
_FRAME = re.compile(r'File "[^"]*?([^/"]+)", line (\d+) in (\w+)')


class EndedError(Exception):
    """The process has ended."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(status)
        found = (
            _FRAME.search(output, max(output.find("Fatal Python error"), 0)) if status < 0 else None
        )
        self.status = status  # its exit status; negative for the signal that ended it
        #: file, line and function of the innermost frame of a crash, and the last line that it has printed
        self.frame = found.groups() if found else ()
        self.words = next(
            (line.strip() for line in reversed(output.splitlines()) if line.strip()), ""
        )


class Isolated:
    """A process of its own, in a session of its own and outside of a launcher's job.

    It runs the function ``main``, as "probe.doctor.bench:main". This takes the task, a value of JSON, an iterator of
    the requests, and a function that tells an answer. ``folder`` is its working folder, which also keeps its output for
    ``EndedError``; "" for this one, and no output. ``variables`` are further ones of its environment.
    """

    def __init__(self, main: str, task: dict[str, Any], folder: str = "", **variables: str) -> None:
        reader, writer = os.pipe()
        path = [os.path.abspath(place) for place in sys.path]  # it may run in another folder
        alone = {
            name: value for name, value in os.environ.items() if name not in _OF_A_LAUNCHER
        }  # no rank of a job
        self._output = tempfile.TemporaryFile(dir=folder) if folder else open(os.devnull, "w+b")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, main, json.dumps(task), str(writer), json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            cwd=folder or None,
            pass_fds=[writer],
            env={**alone, **variables},
            start_new_session=True,
            encoding="utf-8",
        )
        os.close(writer)
        self._stream = os.fdopen(reader, "rb", buffering=0)
        self._text = b""

    def send(self, request: Any) -> None:
        """Send a request. That the process has ended is told by ``receive``."""
        with contextlib.suppress(OSError):
            print(_line(request), file=self._process.stdin, flush=True)

    def receive(self, limit: float) -> Any:
        """Return the next answer; raise TimeoutError after ``limit`` seconds, EndedError when the process has ended."""
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream, selectors.EVENT_READ)
            while b"\n" not in self._text:
                if not selector.select(max(end - time.monotonic(), 0)):
                    raise TimeoutError
                piece = self._stream.read(1 << 16)
                if not piece:
                    raise self._ended(end)
                self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        return json.loads(line)

    def _ended(self, end: float) -> EndedError | TimeoutError:
        try:
            status = self._process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:  # it has only closed its end of the pipe
            return TimeoutError()
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - 20_000))
        return EndedError(status, self._output.read().decode("utf-8", "replace"))

    def close(self) -> None:
        """End the process, and those that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for file in (self._process.stdin, self._stream, self._output):
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]  # all three are pipes


def run() -> None:
    """Run the function that the arguments name; ``Isolated`` calls this in the new process."""
    faulthandler.enable()
    _, main, task, stream = sys.argv
    os.set_inheritable(int(stream), False)
    answers = os.fdopen(int(stream), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)  # nobody else reads the requests

    def tell(answer: Any) -> None:
        print(_line(answer), file=answers, flush=True)

    pkgutil.resolve_name(main)(json.loads(task), map(json.loads, requests), tell)
    os._exit(0)  # a library that fails at exit is no answer


def _line(value: Any) -> str:
    """Return a value as a line of JSON: of a sentence key and facts, of what JSON does not know its text."""
    return json.dumps(
        value, default=lambda item: item.to_dict() if isinstance(item, Sentence) else str(item)
    )


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
