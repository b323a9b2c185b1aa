# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The place where experiments are done: it starts programs in working folders, and knows what was learned so far."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import foreign
from probe.naming import ranges
from probe.reading.dumps.folders import find_folders
from probe.search.full_disk import is_full
from probe.search.ledger import Ledger, Result
from probe.search.on_disk import DiskLook, look, of_program
from probe.search.running import Done, run
from probe.search.wishes import Training, Wishes
from probe.search.workplace import copied, name_originals, states
from probe.series.file import RankSeries

#: the numbers of each tensor, and its checksum
NUMBERS = ("--summary-mode", "max,min,mean,l2norm,md5")
#: all calls
CALLS = ("--level", "mix")


class Lab:
    """Does runs, each in a working folder of its own, and keeps what they leave.

    Args:
        wishes: the wishes of the user.
        ledger: the results so far.
        deadline: the moment of ``time.monotonic`` at which the budget is used up.
    """

    def __init__(self, wishes: Wishes, ledger: Ledger, deadline: float) -> None:
        self.wishes = wishes
        self.ledger = ledger
        self.deadline = deadline
        self.user_folder = os.getcwd()
        self.held: int | None = None  # the descriptor that keeps other searches out of the folder
        self.touched: list[str] = []  # files of the user that a run has changed
        self._looks: dict[tuple[str, str], DiskLook] = {}

    @property
    def left(self) -> float:
        """The seconds that are left of the budget."""
        return self.deadline - time.monotonic()

    def place(self, name: str, part: str) -> str:
        """Return a file or folder of an experiment."""
        return os.path.join(self.ledger.place(name), part)

    def do(
        self, name: str, words: Sequence[str], enough: Callable[[], bool] = lambda: False
    ) -> Done:
        """Run a command of probe in a working folder of its own, from the beginning.

        A run that is killed is made once more: somebody may have killed it by mistake.

        Args:
            name: the experiment.
            words: the words behind ``probe``.
            enough: whether it has done enough.

        Raises:
            UsageError: when the disk is full.
        """
        done = self._once(name, words, enough)
        return self._once(name, words, enough) if done.is_killed else done

    def _once(self, name: str, words: Sequence[str], enough: Callable[[], bool]) -> Done:
        """Make one run."""
        place = self.ledger.place(name)
        for old in ("dump", "work"):
            shutil.rmtree(os.path.join(place, old), ignore_errors=True)
        os.makedirs(place, exist_ok=True)
        kept = self.wishes.folder
        before = states(self.user_folder, kept)
        work = self.user_folder
        if not self.wishes.is_in_place:
            work = copied(self.user_folder, self._copy_of(name), kept)
        log = os.path.join(place, "log.txt")
        held = () if self.held is None else (self.held,)
        variables = self.wishes.variables
        done = run(words, work, log, self.deadline, enough, self.wishes.ranks, held, variables)
        with contextlib.suppress(OSError):  # a full disk is told by the next line
            name_originals(self.place(name, "dump"), work, self.user_folder)
        if is_full(place):
            shutil.rmtree(os.path.join(place, "work"), ignore_errors=True)
            raise UsageError(say("find.full", folder=kept))
        if not self.wishes.is_in_place:
            after = states(self.user_folder, kept)
            self.touched += [path for path, state in after.items() if before.get(path) != state]
            shutil.rmtree(os.path.dirname(work), ignore_errors=True)
        words = done.words.replace(work, self.user_folder)
        return replace(done, words=words)

    def read(self, name: str, words: Sequence[str]) -> Done:
        """Run a command of probe that reads dumps: it needs no working folder of its own.

        Args:
            name: the experiment.
            words: the words behind ``probe``.
        """
        os.makedirs(self.ledger.place(name), exist_ok=True)
        return run(
            words, self.user_folder, os.path.join(self.ledger.place(name), "log.txt"), self.deadline
        )

    def record(
        self, name: str, training: Training, steps: Sequence[int], options: Sequence[str]
    ) -> Done:
        """Record steps of a program, and end it then.

        Args:
            name: the experiment; its folder "dump" has the steps.
            training: the program.
            steps: the steps.
            options: further options of ``probe run``.
        """
        dump = self.place(name, "dump")
        after = steps[-1] + 1  # its folder tells that the step before is complete
        wanted = ",".join(ranges([*steps, after]))
        words = [
            "run",
            *self.wishes.options_of_runs,
            "--step",
            wanted,
            *options,
            "--dump-path",
            dump,
        ]
        mark = os.path.join(dump, f"step{after}")
        enough = functools.partial(_is_begun, mark, self.wishes.ranks)
        done = self.do(name, [*words, *training.words], enough)
        shutil.rmtree(mark, ignore_errors=True)
        return done

    def answer(self, name: str) -> Any:
        """Return the answer in JSON of the last command of an experiment; None where there is none."""
        try:
            with open(self.place(name, "log.txt.out"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def has_steps(self, name: str) -> bool:
        """Return whether an experiment has left a dump."""
        try:
            return bool(find_folders(self.place(name, "dump")))
        except UsageError:  # there is no folder, or no dump below it
            return False

    def look(
        self, name: str, golden: str = "", watched: Callable[[], Sequence[RankSeries]] = tuple
    ) -> DiskLook:
        """Ask all readers about the dump of an experiment, beside a golden run if one is given.

        Args:
            name: the experiment.
            golden: the golden run; "" for none.
            watched: reads the rows of the monitor of another run of the program.
        """
        key = name, golden
        if key not in self._looks:
            self._looks[key] = of_program(look(self.place(name, "dump"), golden, watched()))
        return self._looks[key]

    def _copy_of(self, name: str) -> str:
        """Return the working folder of an experiment, as stacks name it."""
        own_name = os.path.basename(self.user_folder) or "root"
        return os.path.join(os.path.realpath(self.place(name, "work")), own_name)


def _is_begun(folder: str, ranks: int) -> bool:
    """Return whether all ranks have begun a step, or the only process has."""
    return os.path.isdir(folder) and (ranks == 1 or len(os.listdir(folder)) >= ranks)


def failed(name: str, done: Done, seconds: float = 0.0, runs: int = 1) -> Result:
    """Return the result of an experiment whose run has left no answer.

    Args:
        name: the experiment.
        done: the run.
        seconds: how long all its runs took, if there was more than one.
        runs: how many there were.
    """
    learned = say("find.failed", reason=foreign(done.words.removeprefix("probe: ")))
    return Result(name, "failed", learned, seconds or done.seconds, runs)
