# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The wishes of the user for a search: the program, the golden one, the budget, and how programs are started."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say

DEFAULT_FOLDER = "probe_find"


@dataclass(frozen=True)
class Training:
    """A program as Python is given it.

    Attributes:
        path: its file; "" for a module.
        module: its module; "" for a file.
        arguments: its own words.
    """

    path: str
    module: str
    arguments: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """The words behind ``python``."""
        return [*(["-m", self.module] if self.module else [self.path]), *self.arguments]

    def __str__(self) -> str:
        return shlex.join(self.words)

    def check(self) -> None:
        """Raise UsageError where there is no such file."""
        if self.path and not os.path.exists(self.path):
            raise UsageError(say("find.no_file", path=self.path))


@dataclass(frozen=True)
class Wishes:
    """The wishes of the user.

    Attributes:
        training: the program that is sick.
        golden: the program that is well; None without one.
        golden_path: the dump of a run that is well; "" without one.
        folder: where the search is kept.
        minutes: the budget.
        is_in_place: whether the runs work in the folder of the user, and not in a copy.
        options: options of ``probe run`` that each run gets.
        language: the language of the answer.
        as_json: whether the answer is in JSON.
        resumed: the program from a checkpoint on, for the runs after the first; None without one.
        ranks: how many ranks train together.
        seed: the seed that each run gets, with one thread and fixed hashes; None for those of the program.
    """

    training: Training
    golden: Training | None
    golden_path: str
    folder: str
    minutes: float
    is_in_place: bool = False
    options: tuple[str, ...] = ()
    language: str = ENGLISH
    as_json: bool = False
    resumed: Training | None = None
    ranks: int = 1
    seed: int | None = None

    @property
    def options_of_runs(self) -> list[str]:
        """The options of ``probe run`` that each run of the program gets."""
        return [*self.options, *([] if self.seed is None else ["--seed", str(self.seed)])]

    @property
    def variables(self) -> dict[str, str]:
        """The variables of the environment that each run of the program gets."""
        if self.seed is None:
            return {}
        return {"PYTHONHASHSEED": str(self.seed), "OMP_NUM_THREADS": "1"}

    @property
    def repeated(self) -> Training:
        """The program of the runs after the first."""
        return self.resumed or self.training

    @property
    def has_golden(self) -> bool:
        """Whether there is a program or a dump that is well."""
        return self.golden is not None or bool(self.golden_path)

    def command(self, minutes: float) -> str:
        """Return the command that goes on with this search, with another budget."""
        words = ["probe", "find", "--minutes", f"{minutes:g}", *self.options]
        golden = self.golden_path or (str(self.golden) if self.golden else "")
        words += ["--golden", golden] if golden else []
        words += ["--resume", str(self.resumed)] if self.resumed else []
        words += ["--ranks", str(self.ranks)] if self.ranks > 1 else []
        words += ["--seed", str(self.seed)] if self.seed is not None else []
        words += ["--in-place"] if self.is_in_place else []
        if os.path.relpath(self.folder) != DEFAULT_FOLDER:
            words += ["-o", os.path.relpath(self.folder)]
        return shlex.join([*words, *self.training.words])

    @property
    def key(self) -> str:
        """A name for all that the results depend on: another program, or an edit, begins a search of its own."""
        given = (
            self.training.words,
            self.golden.words if self.golden else [],
            self.golden_path,
            self.resumed.words if self.resumed else [],
            self.ranks,
            self.options,
            *([] if self.seed is None else [self.seed]),
            _states(os.curdir),
        )
        return hashlib.sha256(repr(given).encode()).hexdigest()[:12]


def _states(folder: str) -> Sequence[tuple[str, int]]:
    """Return the Python files of a folder, and of those one below, with the times of their last changes."""
    found = [*Path(folder).glob("*.py"), *Path(folder).glob("*/*.py")]
    return sorted((str(path), path.stat().st_mtime_ns) for path in found)
