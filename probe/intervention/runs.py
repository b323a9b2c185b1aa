# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Runs of one program, unchanged and changed: each is a process, is followed, and is kept in the output folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say
from probe.findings.system import foreign
from probe.intervention.change import Calls, Change
from probe.reading.dumps.text import space
from probe.series.file import SeriesTail
from probe.series.series import find_series
from probe.store.file_io import make_dirs

_PAUSE = 0.1
#: takes the numbers of the steps so far, and whether the run has ended; returns the answer, or None while it is open
Decide = Callable[["Run", bool], "bool | None"]
#: the heads of the columns of ``probe try``
_HEADS = {"unchanged": "try.unchanged", "changed": "bisect.changed", "golden": "try.golden"}


@dataclass
class Run:
    """One run.

    Attributes:
        folder: its folder: log.txt, change.json, monitor/, run.json.
        rows: the steps with the numbers of the monitor.
        status: its exit status; None while it runs, or where it was cut.
        answer: the answer of the condition.
        was_kept: whether it was there already.
    """

    folder: str
    rows: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    status: int | None = None
    answer: bool | None = None
    was_kept: bool = False

    @property
    def losses(self) -> dict[int, float]:
        """Step -> loss; NaN/Inf as they are."""
        return {step: row["loss"] for step, row in self.rows if "loss" in row}

    @property
    def why(self) -> str:
        """The last line of its log; of an error of probe the words alone."""
        with (
            contextlib.suppress(OSError),
            open(os.path.join(self.folder, "log.txt"), errors="replace") as file,
        ):
            last = next((line.strip() for line in reversed(file.readlines()) if line.strip()), "")
            return last.removeprefix(f"{UsageError.__module__}.{UsageError.__qualname__}: ")
        return ""


@dataclass
class Runs:
    """Starts the runs of one program.

    Attributes:
        program: path, module, arguments; one of the first two is "".
        folder: the output folder; a run that is there already is not made again.
        steps: each run is cut after so many; 0 for the program's own end.
        ranks: how many processes msrun starts; 0 for one without msrun.
        options: ``at_model`` and ``as_msprobe`` of ``probe run``.
    """

    program: tuple[str, str, list[str]]
    folder: str
    steps: int = 0
    ranks: int = 0
    options: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._noted = ""  # the calls of the first step of the unchanged run

    @property
    def calls(self) -> Calls:
        """The calls of the first step of the unchanged run, which is made before."""
        return Calls(self._noted)

    def run(
        self, change: Change | None = None, decide: Decide | None = None, **settings: Any
    ) -> Run:
        """Return a run, as far as the condition needs it; without one up to its end.

        Raise UsageError when the unchanged program fails, or has no loss.
        """
        change = change or Change()
        beside = Path(self.program[0]).parent
        states = [
            (str(path), path.stat().st_mtime_ns)
            for name in ("*.py", "*/*.py")
            for path in sorted(beside.glob(name))
        ]
        given = self.program, self.ranks, self.options, change.text(), settings, states
        key = hashlib.sha256(repr(given).encode()).hexdigest()[:12]
        run = Run(os.path.join(self.folder, f"{'changed' if change.said else 'unchanged'}-{key}"))
        ended = os.path.join(run.folder, "ended.json")
        self._noted = (
            self._noted if change.said else os.path.abspath(os.path.join(run.folder, "calls.json"))
        )
        if os.path.isdir(run.folder):
            with contextlib.suppress(OSError, ValueError), open(ended) as kept:
                run.status = json.load(kept)
            _read(run, _tails(run.folder))
            run.answer = self._answer(run, decide, run.status is not None)
            run.was_kept = True
            if run.answer is not None:
                return run
        run = Run(run.folder)
        self._follow(run, self._start(run, change, settings), decide)
        if run.status == 0:
            with open(ended, "w") as kept:
                json.dump(run.status, kept)
        if not change.said and not run.losses:
            raise UsageError(say("try.no_loss", reason=foreign(run.why), folder=run.folder))
        return run

    def _answer(self, run: Run, decide: Decide | None, has_ended: bool) -> bool | None:
        has_ended = has_ended or bool(self.steps and len(run.losses) >= self.steps)
        return (has_ended or None) if decide is None else decide(run, has_ended)

    def _start(self, run: Run, change: Change, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
        shutil.rmtree(run.folder, ignore_errors=True)
        make_dirs(run.folder)
        given = {
            "folder": os.path.abspath(run.folder),
            "calls": self._noted,
            "program": self.program,
            "change": asdict(change),
            "at_model": False,
            "as_msprobe": False,
            "settings": {"task": "monitor", "quiet": True, "synchronize": True, **settings},
            **self.options,
        }
        with open(os.path.join(run.folder, "change.json"), "w", encoding="utf-8") as file:
            json.dump(given, file, indent=1)
        binaries = os.path.dirname(sys.executable)
        variables = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"}
        command = [sys.executable, "-m", "probe.intervention.child", json.dumps(given)]
        if self.ranks:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            counts = [
                f"--worker_num={self.ranks}",
                f"--local_worker_num={self.ranks}",
                f"--master_port={port}",
            ]
            msrun = os.path.join(binaries, "msrun")
            command[0] = "python"  # msrun takes no path of an interpreter
            command = [msrun, *counts, f"--log_dir={run.folder}/ranks", "--join=True", *command]
        with open(os.path.join(run.folder, "log.txt"), "wb") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            return subprocess.Popen(command, env=variables, start_new_session=True, **streams)  # type: ignore[call-overload, no-any-return]  # by their names

    def _follow(self, run: Run, process: subprocess.Popen[bytes], decide: Decide | None) -> None:
        tails: dict[str, SeriesTail] = {}
        try:
            while run.answer is None:
                status = process.poll()
                _read(run, _tails(run.folder, tails))
                run.status = status
                run.answer = self._answer(run, decide, status is not None)
                if status is not None:
                    return
                time.sleep(_PAUSE)
        finally:
            _end(process, bool(self.ranks))


def _tails(folder: str, known: dict[str, SeriesTail] | None = None) -> list[SeriesTail]:
    known = {} if known is None else known
    return [known.setdefault(path, SeriesTail(path)) for path, _ in find_series(folder)[:1]]


def _read(run: Run, tails: Sequence[SeriesTail]) -> None:
    for tail in tails:
        with contextlib.suppress(OSError, ValueError):
            run.rows += tail.new_rows()


def _end(process: subprocess.Popen[bytes], is_msrun: bool) -> None:
    """End a process, and those that it has started; msrun's ranks are in sessions of their own, and it ends them."""
    if is_msrun and process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def table(columns: Mapping[str, Mapping[int, float]], language: str = ENGLISH) -> str:
    """Return series beside each other, a line for each step of the first.

    >>> print(table({"unchanged": {0: 2.5, 1: 2.0}, "changed": {0: 2.5}}))
      step  unchanged     changed
         0        2.5         2.5
         1          2           -
    """
    first = next(iter(columns.values()))
    heads = [say(_HEADS[name]).text(language) for name in columns]
    sizes = [11 if name == "unchanged" else 12 for name in columns]
    lines = [
        "  step" + "".join(" " * (size - space(head)) + head for head, size in zip(heads, sizes))
    ]
    for step in first:
        cells = [
            f"{series[step]:>12.6g}"[-12:] if step in series else f"{'-':>12}"
            for series in columns.values()
        ]
        lines.append(f"{step:>6}" + "".join(cells)[1:])
    return "\n".join(lines)
