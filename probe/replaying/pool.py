# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Gives calls to worker processes; a process that crashes or hangs loses one call, and is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import selectors
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

from probe.reading.dumps.work import cores

_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from probe.replaying.worker import main; main()"
#: variables of a launcher: a worker is no rank
_OF_A_LAUNCHER = frozenset(
    "RANK_ID RANK_SIZE MS_ROLE MS_NODE_ID MS_WORKER_NUM OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE".split()
)
#: the seconds in which a process has to have imported MindSpore
_START_LIMIT = 300.0
#: a process makes so many calls: what they leave behind does not grow
_MOST_CALLS = 1000

Result = dict[str, Any]


class Worker:
    """One process that makes calls again.

    Args:
        options: the device, and the dtype of the calls here.
        threads: how many threads it may use.
    """

    def __init__(self, options: dict[str, str], threads: int) -> None:
        reader, writer = os.pipe()
        command = [sys.executable, "-c", _START, json.dumps({**options, "stream": writer}), json.dumps(sys.path)]
        environment = {key: value for key, value in os.environ.items() if key not in _OF_A_LAUNCHER}
        environment["OMP_NUM_THREADS"] = str(threads)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writer],
            env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(writer)
        self._stream: IO[bytes] = os.fdopen(reader, "rb", buffering=0)
        self._text = b""
        self._calls = 0

    def start(self) -> str:
        """Wait until it can work; return why it cannot, or ""."""
        found = self._answer(_START_LIMIT)
        return found if isinstance(found, str) else ""

    def run(self, call: dict[str, Any], limit: float) -> Result | str:
        """Return the result of a call, or why there is none."""
        assert self._process.stdin is not None
        self._calls += 1
        try:
            self._process.stdin.write(json.dumps(call).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return self._ended()
        return self._answer(limit)

    @property
    def is_old(self) -> bool:
        """Whether another process should take its place."""
        return self._calls >= _MOST_CALLS

    def stop(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._stream.close()

    def _answer(self, limit: float) -> Result | str:
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream, selectors.EVENT_READ)
            while b"\n" not in self._text:
                if not selector.select(limit):
                    return f"it did not end within {limit:g} s"
                piece = self._stream.read(1 << 16)
                if not piece:
                    return self._ended()
                self._text += piece
        line, _, self._text = self._text.partition(b"\n")
        found: Result = json.loads(line)
        return found

    def _ended(self) -> str:
        status = self._process.wait()
        return f"its process ended by signal {-status}" if status < 0 else f"its process ended with status {status}"


class Pool:
    """Some workers.

    Args:
        jobs: how many; 0 means one for each core.
        options: the device, and the dtype of the calls here.
        limit: the seconds that a call may take.
    """

    def __init__(self, jobs: int, options: dict[str, str], limit: float) -> None:
        self._jobs, self._options, self._limit = jobs or cores(), options, limit
        self._stopped = False

    def run(self, calls: Sequence[dict[str, Any]]) -> Iterator[tuple[int, Result]]:
        """Yield the number of a call and its result, in the order in which they end."""
        waiting: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Result]] = queue.SimpleQueue()
        for item in enumerate(calls):
            waiting.put(item)
        jobs = max(1, min(self._jobs, len(calls)))
        threads = [
            threading.Thread(target=self._work, args=(waiting, done, max(1, cores() // jobs)), daemon=True)
            for _ in range(jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in calls:
                yield done.get()
        finally:
            self._stopped = True
            for thread in threads:
                thread.join()

    def _work(self, waiting: Any, done: Any, threads: int) -> None:
        worker: Worker | None = None
        failure = ""
        while not self._stopped:
            try:
                number, call = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None and not failure:
                worker = Worker(self._options, threads)
                failure = worker.start()
            result = failure or worker.run(call, self._limit)  # type: ignore[union-attr]
            if isinstance(result, str):
                done.put((number, {"verdict": "not replayable", "reason": result, "golden": "", "outputs": []}))
            else:
                done.put((number, result))
            if worker is not None and (isinstance(result, str) or worker.is_old):
                worker.stop()
                worker = None
        if worker is not None:
            worker.stop()
