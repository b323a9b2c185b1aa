# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe drill``: plants faults of rising size into short runs, and tells which rule or command names each."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.intervention.change import Change
from probe.intervention.faults import SIZES
from probe.intervention.runs import Run, Runs
from probe.options import OneLineParser
from probe.reading.compare.answer.comparison import compare
from probe.reading.dumps.run import open
from probe.reading.dumps.text import columns, terminal_width
from probe.reading.one_run.health.run_check import look_at_run
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


def add_drill(
    parser: OneLineParser,
) -> Callable[[argparse.Namespace, Runs], tuple[dict[str, Any], int, str]]:
    """Add the options of ``probe drill``; return what runs it."""
    jobs = say("help.default", help=say("help.jobs"), value=2)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help=jobs.text(parser.language))

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

    def answer(self, language: str) -> tuple[dict[str, Any], int, str]:
        """Return the answer as JSON, the exit status, and the text."""
        count = len(self._runs.run(interval=1).losses)
        self._at = min(_AT, count * 3 // 4)
        if not self._at:
            raise UsageError(say("drill.steps", count=count))
        self._clean = self._run("clean", 0.0)
        false = _alarms(self._clean)
        self._known = {(alarm.rule, alarm.series) for alarm in false} | _findings(self._clean)
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
            {"fault": kind, "size": size, "by": by, "after": after, "said": said}
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
        text = self._text(rows, false, [_words(*item) for item in smallest.items()], language)
        return answer, int(bool(missed or false)), text

    def _run(self, kind: str, size: float) -> Run:
        said = str(_words(kind, size))
        run = self._runs.run(Change(fault=(kind, size, self._at), said=said), interval=1)
        print(f"{said}: {len(run.losses)} steps", file=sys.stderr)
        return run

    def _named(self, kind: str, size: float) -> tuple[str, int | None, str]:
        """Return the rule or command that names a fault, after how many steps, and its sentence."""
        run = self._run(kind, size)
        alarms = [alarm for alarm in _alarms(run) if (alarm.rule, alarm.series) not in self._known]
        if alarms:
            return (
                alarms[0].rule,
                alarms[0].step - self._at,
                f"{alarms[0].series}: {alarms[0].said}",
            )
        if run.status:
            return "the program", None, run.why
        for found in sorted(_findings(run) - self._known):
            return "probe check", 0, found
        comparison = compare(self._clean.folder, run.folder)
        first = comparison.first
        return (
            ("probe compare", (first.step or self._at) - self._at, str(first.sentence))
            if first
            else ("", None, "")
        )

    def _text(
        self, rows: list[dict[str, Any]], false: list[Any], smallest: list[Any], language: str
    ) -> str:
        lines = [[say(key).text(language) for key in _HEAD]]
        for row in rows:
            said = _words(row["fault"], row["size"]).text(language)
            after = "" if row["after"] is None else str(row["after"])
            lines.append(
                [said, row["by"] or say("drill.nobody").text(language), after, row["said"][:90]]
            )
        summary = say(
            "drill.summary",
            at=self._at,
            false=len(false),
            count=len(rows),
            named=sum(bool(row["by"]) for row in rows),
            smallest=smallest,
        )
        return "\n".join([columns(lines, terminal_width()), summary.text(language)])


def _words(kind: str, size: float) -> Sentence:
    """Return a fault in words."""
    keys = _SAID[kind]
    return say(keys[int(size) if len(keys) > 1 else 0], size=size)


def _alarms(run: Run) -> list[Any]:
    rules = OnlineRules()
    return [alarm for row in run.rows for alarm in rules.feed(*row)]


def _findings(run: Run) -> set[str]:
    """Return what ``probe check`` finds in the dump of a run."""
    return {
        str(item.said) for item in look_at_run(open(run.folder)).findings if item.weight != NOTE
    }
