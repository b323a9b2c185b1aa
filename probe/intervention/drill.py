# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe drill``: plants faults of rising size into short runs, and tells which rule or command names each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.findings.system import foreign
from probe.findings.wording import Wording
from probe.intervention.change import Change
from probe.intervention.faults import SIZES
from probe.intervention.runs import Run, Runs
from probe.options import OneLineParser
from probe.reading.commands.arguments import add_options
from probe.reading.commands.command import Option
from probe.reading.compare.answer.comparison import compare
from probe.reading.dumps.run import open
from probe.reading.dumps.text import columns, terminal_width
from probe.reading.one_run.health.run_look import look_at_run
from probe.reading.one_run.health.step import NOTE
from probe.series.online_rules import OnlineRules

#: the steps of a run, and the step of the fault; of shorter programs it is at three quarters
_STEPS = 32
_AT = 24
_HEAD = ("drill.fault", "drill.by", "drill.after", "drill.said")
#: the words of each fault; of some they depend on the size
_SAID = {
    "clean": ("drill.clean",), "gradient": ("drill.gradient",), "nan": ("drill.nan",), "rate": ("drill.rate",),
    "frozen": ("drill.frozen_0", "drill.frozen_1"), "batch": ("drill.batch",), "rank": ("drill.rank",),
    "transposed": ("drill.transposed_0", "drill.transposed_1"),
}  # fmt: skip
#: who names a fault, after how many steps, and the sentence; nobody is NOTHING
Named = tuple[Sentence, Optional[int], Sentence]


def add_drill(
    parser: OneLineParser,
) -> Callable[[argparse.Namespace, Runs], tuple[dict[str, Any], int, str]]:
    """Add the options of ``probe drill``; return what runs it."""
    jobs = Option(
        "--jobs",
        type=int,
        default=2,
        metavar="N",
        help=Wording("how many runs go on at once", "同时进行多少次运行"),
    )
    add_options(parser, [jobs], parser.language)

    def run(given: argparse.Namespace, runs: Runs) -> tuple[dict[str, Any], int, str]:
        runs.steps = runs.steps or _STEPS
        return Drill(runs, max(given.jobs, 1)).answer(given.lang)

    return run


class Drill:
    """The clean run, and what was made of each fault."""

    def __init__(self, runs: Runs, jobs: int) -> None:
        self._runs = runs
        self._jobs = jobs
        self._at = 0
        self._clean = Run("")
        self._known: set[Any] = set()
        self._language = ENGLISH  # of the lines about each run

    def answer(self, language: str) -> tuple[dict[str, Any], int, str]:
        """Return the answer as JSON, the exit status, and the text."""
        self._language = language
        count = len(self._runs.run(interval=1).losses)
        self._at = min(_AT, count * 3 // 4)
        if not self._at:
            raise UsageError(say("drill.steps", count=count))
        self._clean = self._run("clean", 0.0)
        false = _alarms(self._clean)
        self._known = {(alarm.rule, alarm.series) for alarm in false} | _findings(
            self._clean
        ).keys()
        faults = [
            (kind, size)
            for kind, sizes in SIZES.items()
            for size in sizes
            if kind != "rank" or self._runs.ranks
        ]
        threads = ThreadPoolExecutor(self._jobs)
        try:
            named = list(threads.map(lambda fault: self._named(*fault), faults))
        finally:
            threads.shutdown(cancel_futures=True)
        rows: list[dict[str, Any]] = [
            {"fault": kind, "size": size, "by": str(by), "after": after, "said": str(said)}
            for (kind, size), (by, after, said) in zip(faults, named)
        ]
        missed = [
            kind
            for (kind, size), (by, *_) in zip(faults, named)
            if size == SIZES[kind][-1] and not by
        ]
        smallest = {row["fault"]: row["size"] for row in reversed(rows) if row["by"]}
        answer = {
            "steps": count,
            "at": self._at,
            "false": [str(alarm.said) for alarm in false],
            "faults": rows,
            "missed": missed,
            "smallest": smallest,
        }
        counts = {"at": self._at, "false": len(false), "count": len(rows)}
        found = sum(bool(row["by"]) for row in rows)
        summary = say(
            "drill.summary",
            **counts,
            named=found,
            smallest=[_words(*item) for item in smallest.items()],
        )
        text = "\n".join([_table(faults, named, language), summary.text(language)])
        return answer, int(bool(missed or false)), text

    def _run(self, kind: str, size: float) -> Run:
        words = _words(kind, size)
        run = self._runs.run(Change(fault=(kind, size, self._at), said=str(words)), interval=1)
        told = say("drill.ran", fault=words, count=len(run.losses))
        print(told.text(self._language), file=sys.stderr)
        return run

    def _named(self, kind: str, size: float) -> Named:
        """Return the rule or command that names a fault, after how many steps, and its sentence."""
        run = self._run(kind, size)
        alarms = [alarm for alarm in _alarms(run) if (alarm.rule, alarm.series) not in self._known]
        if alarms:
            first = alarms[0]
            said = say("drill.alarm", series=first.series, said=first.said)
            return say("drill.rule", rule=first.rule), first.step - self._at, said
        if run.status:
            return say("drill.program"), None, foreign(run.why)
        findings = _findings(run)
        for found in sorted(findings.keys() - self._known):
            return say("drill.check"), 0, findings[found]
        origin = compare(self._clean.folder, run.folder).first
        if origin is None:
            return NOTHING, None, NOTHING
        return say("drill.compare"), (origin.step or self._at) - self._at, origin.said


def _table(faults: Sequence[tuple[str, float]], named: Sequence[Named], language: str) -> str:
    """Return a line for each fault: who names it, and with which words."""
    lines = [[say(key).text(language) for key in _HEAD]]
    for fault, (by, after, said) in zip(faults, named):
        who = by or say("drill.nobody")
        shown = [_words(*fault).text(language), who.text(language)]
        lines.append([*shown, "" if after is None else str(after), said.text(language)[:90]])
    return columns(lines, terminal_width())


def _words(kind: str, size: float) -> Sentence:
    """Return a fault in words."""
    keys = _SAID[kind]
    return say(keys[int(size) if len(keys) > 1 else 0], size=size)


def _alarms(run: Run) -> list[Any]:
    rules = OnlineRules()
    return [alarm for row in run.rows for alarm in rules.feed(*row)]


def _findings(run: Run) -> dict[str, Sentence]:
    """Return what ``probe check`` finds in the dump of a run, by its English words."""
    return {
        str(item.said): item.said
        for item in look_at_run(open(run.folder)).findings
        if item.weight != NOTE
    }
