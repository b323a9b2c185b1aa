# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks in processes of their own: one that crashes, hangs or fails takes no other check down."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any

from probe.doctor.checks import Check
from probe.doctor.finding import FAILED, NOT_RUN, Finding
from probe.errors import UsageError

Row = dict[str, Any]

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from probe.doctor.worker import main; main()"
_OF_A_LAUNCHER = frozenset(
    "RANK_ID RANK_SIZE MS_ROLE MS_NODE_ID MS_WORKER_NUM OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE".split()
)
_PATH = re.compile(r"(?<![\w.:/-])/(?:[^/\s'\",:;()]+/)+([^/\s'\",:;()]*)")
#: of faulthandler: the innermost frame of a process that crashed
_FRAME = re.compile(r'File "[^"]*?([^/"]+)", line (\d+) in (\w+)')


class Runner:
    """Runs checks.

    Args:
        device: the name of the device, or "" for the one that MindSpore chooses.
        chosen: the folder for the files of the checks, or "" for the one for temporary files.
        limit: the seconds that a check may take.
    """

    def __init__(self, device: str, chosen: str, limit: float) -> None:
        self._device, self._limit = device, limit
        self._chosen = os.path.abspath(chosen) if chosen else ""  # the checks run in another folder

    def rows(self, checks: Iterable[Check]) -> Iterator[Row]:
        """Yield the result of each check.

        Yields:
            ``{"name": …, "result": …, "fact": …, "seconds": …, "device": …, "details": {…}}``
        """
        is_needed = {check.name: check.is_needed for check in checks}
        waiting = list(is_needed)
        with contextlib.ExitStack() as cleanup:
            folder = cleanup.enter_context(self._folder())
            while waiting:
                for row in self._process(waiting, os.path.join(folder, str(len(waiting)))):
                    waiting.remove(row["name"])
                    yield scrub(row)
                    if row["result"] == FAILED and is_needed[row["name"]]:
                        fact = f"it needs the check {row['name']!r}"
                        yield from (_row(name, Finding(NOT_RUN, fact)) for name in waiting)
                        return

    @contextlib.contextmanager
    def _folder(self) -> Iterator[str]:
        """Make the folder for the files of the checks; the check "folder" tells if the chosen one cannot be used."""
        made = ""
        for place in [self._chosen, None] if self._chosen else [None]:
            with contextlib.suppress(OSError):
                made = made or tempfile.mkdtemp(prefix="probe-doctor-", dir=place)
        if not made:
            raise UsageError("no folder for temporary files can be written. Choose one with --folder.")
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _process(self, names: list[str], folder: str) -> Iterator[Row]:
        """Yield the results of checks that run in one process, until one fails or all are done."""
        os.makedirs(folder)
        reader, writer = os.pipe()
        task = {"stream": writer, "checks": names, "device": self._device, "chosen": self._chosen, "folder": folder}
        command = [
            sys.executable,
            "-c",
            _START,
            json.dumps(task),
            json.dumps([os.path.abspath(place) for place in sys.path]),
        ]
        current, began = names[0], time.monotonic()
        with open(reader, "rb") as stream, tempfile.TemporaryFile(dir=folder) as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,  # MindSpore's backend of Ascend makes a folder "offload" there
                pass_fds=[writer],
                env=alone(),
                start_new_session=True,
            )
            os.close(writer)
            try:
                for message in self._messages(stream):
                    if message is None:
                        fact = f"it did not end within {self._limit:g} s"
                        yield _row(current, Finding(FAILED, fact), time.monotonic() - began)
                        return
                    if message.get("begins"):
                        current, began = message["name"], time.monotonic()
                        continue
                    yield message
                    current = ""
                    if message["result"] == FAILED:
                        return
                if current:
                    seconds = time.monotonic() - began
                    yield _row(current, Finding(FAILED, _ending(process.wait(self._limit), output)), seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _messages(self, stream: IO[bytes]) -> Iterator[Row | None]:
        """Yield the messages of a process; None if it says nothing for too long."""
        gathered = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                if not selector.select(self._limit):
                    yield None
                    return
                part = os.read(stream.fileno(), 65536)
                if not part:
                    return
                *lines, gathered = (gathered + part).split(b"\n")
                yield from map(json.loads, lines)


def alone() -> dict[str, str]:
    """Return the environment without the variables of a launcher: the checks are no rank of a job."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_LAUNCHER}


def _row(name: str, finding: Finding, seconds: float = 0.0) -> Row:
    row: Row = scrub({"name": name, "seconds": round(seconds, 2), "device": "", **vars(finding)})
    return row


def _ending(status: int, output: IO[bytes]) -> str:
    """Return how a process ended before its check did, with the last words of it."""
    output.seek(max(0, output.seek(0, os.SEEK_END) - 20_000))
    text = output.read().decode("utf-8", "replace")
    if status < 0:
        frame = _FRAME.search(text, max(text.find("Fatal Python error"), 0))
        place = " in {2} ({0}, line {1})".format(*frame.groups()) if frame else ""
        return f"its process was ended by {signal.Signals(-status).name}{place}"
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    return f"its process ended with exit status {status}: {last[:200]}"


def scrub(value: Any) -> Any:
    """Return a value whose texts tell nothing personal: no folder, host or user.

    >>> scrub({"error": "cannot open /home/alice/run/a.so"})
    {'error': 'cannot open …/a.so'}
    """
    if isinstance(value, dict):
        return {key: scrub(item) for key, item in value.items()}
    if isinstance(value, list):
        return [scrub(item) for item in value]
    if not isinstance(value, str):
        return value
    text = _PATH.sub(r"…/\1", value)
    host = socket.gethostname()
    return re.sub(rf"\b{re.escape(host)}\b", "<host>", text) if len(host) > 3 else text
