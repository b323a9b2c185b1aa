# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The next thing to do after an answer: a row for each kind of finding, with the command to type."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.check.snapshot import read_snapshots
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.folders import find_folders
from probe.search.cause import COMPARED, HEALTH, NONFINITE, RANKS, WATCHED, Cause
from probe.search.on_disk import DiskLook
from probe.search.random_calls import have_one_seed, have_seeds, is_random_call
from probe.search.unheld import FROZEN, UNHELD
from probe.series.series import find_series

#: steps behind the first one that are recorded next
_FURTHER = 2
#: stands for the program where no run.json has its command
_UNKNOWN_PROGRAM = "train.py"
#: the sentence about a call that one side alone has, in that about an update
_ONLY_CALL = "compare.only_call"
#: what is to be done -> the same where both runs have set one seed
_WITH_SEED = {"find.do_weights": "find.do_weights_alone"}
#: what is to be done with a line -> the same where no line is known
_WITHOUT_LINE = {"find.do_rule": "find.do_rule_without_line"}


@dataclass(frozen=True)
class Advice:
    """The next thing to do.

    Attributes:
        said: the thing to do, in words.
        command: the command to type.
    """

    said: Sentence
    command: str


@dataclass(frozen=True)
class RunPlace:
    """The run that was looked at, and the golden one beside it.

    Attributes:
        path: the run.
        golden: the golden run; "" for none.
        program: the program and its arguments.
        ranks: how many ranks it has.
    """

    path: str
    golden: str
    program: str
    ranks: int = 1

    def reads(self, command: str, *words: str) -> str:
        """Return a command that reads the run."""
        return shlex.join(["probe", command, self.path, *words])

    def compares(self, command: str) -> str:
        """Return a command that reads both runs."""
        return shlex.join(["probe", command, self.golden, self.path])

    def records(self, words: Sequence[str]) -> str:
        """Return a command that records the training again, into a folder of its own."""
        folder = f"{self.path.rstrip('/')}-next"
        start = ["probe", "run"]
        if self.ranks > 1:
            counts = [f"--worker_num={self.ranks}", f"--local_worker_num={self.ranks}"]
            start = ["msrun", *counts, "--join=True", "python", "-m", *start]
        return f"{shlex.join([*start, *words, '--dump-path', folder])} {self.program}"


@dataclass(frozen=True)
class AdviceRow:
    """A row of the table.

    Attributes:
        does: the sentence about the thing to do.
        command: makes the command to type.
    """

    does: str
    command: Callable[[RunPlace, Cause], str]


def _steps(cause: Cause) -> list[str]:
    return [] if cause.step is None else ["--step", str(cause.step)]


def _shown(place: RunPlace, cause: Cause) -> str:
    return place.reads("show", *_steps(cause), "--name", cause.call)


def _replayed(place: RunPlace, cause: Cause) -> str:
    arrays = ["--task", "tensor", "--level", "mix", *_steps(cause), "--list", cause.call]
    return place.records(arrays)


#: the reader and the kind of a cause -> the next thing to do; "" is any other kind
ROWS: dict[tuple[str, str], AdviceRow] = {
    (COMPARED, Kind.ARGUMENT): AdviceRow(
        "find.do_line", lambda place, _: place.compares("compare")
    ),
    (COMPARED, Kind.WIRING): AdviceRow("find.do_line", lambda place, _: place.compares("compare")),
    (COMPARED, Kind.CALLS): AdviceRow("find.do_line", lambda place, _: place.compares("compare")),
    (COMPARED, Kind.DATA): AdviceRow("find.do_data", lambda place, _: place.compares("check")),
    (COMPARED, Kind.PARAMETER): AdviceRow(
        "find.do_weights", lambda place, _: place.compares("check")
    ),
    (COMPARED, Kind.OPTIMIZER): AdviceRow(
        "find.do_update", lambda place, _: place.compares("check")
    ),
    (COMPARED, Kind.COMPUTATION): AdviceRow("find.do_replay", _replayed),
    (COMPARED, Kind.GRADIENT): AdviceRow(
        "find.do_gradient", lambda place, _: place.compares("compare")
    ),
    (COMPARED, Kind.COMMUNICATION): AdviceRow(
        "find.do_ranks", lambda place, _: place.reads("ranks")
    ),
    (COMPARED, Kind.RANDOM): AdviceRow(
        "find.do_same_seed", lambda place, _: place.compares("check")
    ),
    (COMPARED, Kind.OUTSIDE): AdviceRow("find.do_outside", _shown),
    (COMPARED, ""): AdviceRow("find.do_line", lambda place, _: place.compares("compare")),
    (NONFINITE, ""): AdviceRow("find.do_inputs", _shown),
    (HEALTH, ""): AdviceRow("find.do_rule", lambda place, _: place.reads("check")),
    (HEALTH, FROZEN): AdviceRow("find.do_thaw", lambda place, _: place.compares("check")),
    (HEALTH, UNHELD): AdviceRow("find.do_hold", lambda place, _: place.compares("check")),
    (WATCHED, ""): AdviceRow("find.do_setting", lambda place, _: place.reads("watch")),
    (RANKS, ""): AdviceRow("find.do_ranks", lambda place, _: place.reads("ranks")),
}


#: the sentence of a cause -> the next thing to do, where it tells more than the kind
OF_SENTENCE = {
    "compare.changed_after_update": AdviceRow(
        "find.do_written", lambda place, _: place.compares("compare")
    ),
    "compare.constant_differs": AdviceRow("find.do_constant", _shown),
}


def advice(seen: DiskLook, path: str, golden: str = "") -> Advice:
    """Return the next thing to do after a look at one run or two.

    Args:
        seen: the answer of the readers.
        path: the run.
        golden: the golden run beside it; "" for none.
    """
    place = RunPlace(path, golden, program_of(path), _count_of_ranks(path))
    cause = seen.cause
    if cause is not None:
        kind = Kind.CALLS if is_of_call(cause.said) else cause.kind
        of_kind = ROWS.get((cause.reader, kind)) or ROWS[cause.reader, ""]
        row = OF_SENTENCE.get(cause.said.key, of_kind)
        does = _WITHOUT_LINE.get(row.does, row.does) if cause.line is None else row.does
        if does in _WITH_SEED and have_one_seed(path, golden):
            does = _WITH_SEED[does]
        return Advice(say(does), row.command(place, cause))
    if seen.doubt:
        return Advice(say(_repeats(seen.doubt.facts["name"], place)), place.compares("compare"))
    return _without_cause(seen, place)


def is_of_call(said: Sentence) -> bool:
    """Return whether a sentence about an update tells that one side alone has a call before it."""
    parts = said.facts.get("parts") or [said]
    causes = [part.facts.get("cause") for part in parts if isinstance(part, Sentence)]
    return any(isinstance(cause, Sentence) and cause.key == _ONLY_CALL for cause in causes)


def _without_cause(seen: DiskLook, place: RunPlace) -> Advice:
    """Return the next thing to do where no reader names a cause."""
    early = place.records(["--level", "mix", "--step", "0-2"])
    if seen.step is not None:
        steps = f"{max(seen.step - 1, 0)}-{seen.step}"
        return Advice(say("find.do_step"), place.records(["--level", "mix", "--step", steps]))
    if seen.status:
        return Advice(say("find.do_record"), early)
    if place.golden and seen.circumstances:
        return Advice(say("find.do_circumstances"), place.compares("check"))
    if place.golden:
        return Advice(say("find.do_later"), place.records(["--level", "mix", *_later(place)]))
    if find_series(place.path):
        return Advice(say("find.do_early"), early)
    return Advice(say("find.do_watch"), place.records(["--task", "monitor"]))


def _later(place: RunPlace) -> list[str]:
    """Return the options that record the steps behind those that were recorded."""
    known = [folder.step for folder in find_folders(place.path) if folder.step is not None]
    first = max(known, default=-1) + 1
    return ["--step", f"{first}-{first + _FURTHER}"]


def _repeats(name: str, place: RunPlace) -> str:
    """Return the sentence that tells how a call is made to repeat its bits: a seed helps where none is set."""
    if not is_random_call(name):
        return "find.do_repeat"
    is_seeded = have_seeds(place.path, place.golden)
    return "find.do_repeat_random" if is_seeded else "find.do_seed"


def _count_of_ranks(path: str) -> int:
    """Return how many ranks a run has: of its rows, or of its dumps."""
    of_rows = {rank for _, rank in find_series(path)}
    return len(of_rows or {folder.rank for folder in find_folders(path)})


def program_of(path: str) -> str:
    """Return the program of a run with its arguments, as run.json has it; "train.py" where there is none."""
    try:
        snapshots = read_snapshots(path)
    except UsageError:
        return _UNKNOWN_PROGRAM
    words = next((item.run.get("command") for item in snapshots if item.run.get("command")), None)
    return shlex.join(words) if words else _UNKNOWN_PROGRAM
