# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check`` of one run: the findings in it, and its description."""

from __future__ import annotations

import os
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say
from probe.reading.check.check import Check, check as check_two
from probe.reading.check.snapshot import RunSnapshot, read_snapshots
from probe.reading.dumps import text
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.work import HERE, Workers
from probe.reading.one_run.health.describing import describe
from probe.reading.one_run.health.rows import alarms_of, gaps_of, read_rows
from probe.reading.one_run.health.run_look import look_at_run
from probe.reading.one_run.health.step import FAULT, NOTE, WEIGHTS, not_known

#: how many findings are shown where nothing is said
ROWS = 12


class RunCheck:
    """The findings in one run; one without a dump is only described.

    Attributes:
        findings: the findings, the heaviest first.
        errors: the reasons why dumps could not be read.
        unknown: the parts of the run that cannot be known, as they were not recorded.

    Example::

        check = probe.check("dump_path")
        assert check.ok, check
    """

    def __init__(self, run: Run, snapshots: list[RunSnapshot], workers: Workers = HERE) -> None:
        self._run = run
        self._snapshots = snapshots
        rows = read_rows(run.path)
        seen = look_at_run(run, workers, rows.ranks)
        found = [*seen.findings, *seen.series, *alarms_of(rows.ranks)]
        self.findings = sorted(found, key=lambda item: WEIGHTS.index(item.weight))
        self._unread = [*seen.unread, *rows.unread]
        self.errors = [str(reason) for reason in self._unread]
        self.unknown = list(seen.gaps)
        if rows.ranks:
            self.unknown += gaps_of(rows.ranks)
        self._looked = seen.looked

    @property
    def ok(self) -> bool:
        """Whether there is no fault; a suspicious line is none."""
        return not any(item.weight == FAULT for item in self.findings)

    @property
    def is_known(self) -> bool:
        """Whether everything could be read, and nothing about the ranks cannot be known."""
        if self.errors or self.unknown:
            return False
        return not any(item.rule == "ranks" and item.weight == NOTE for item in self.findings)

    def text(self, language: str, rows: int = ROWS) -> str:
        """Return the findings and the description, in a language: "en" or "zh"; ``rows`` 0 shows all findings."""
        shown = self.findings[:rows] if rows > 0 else self.findings
        said = [item.whole for item in shown]
        rest = len(self.findings) - len(shown)
        if rest:
            said.append(say("health.rest", count=rest))
        if not said and self._looked.has_numbers:
            said.append(say("health.none", looked=self._looked.said))
        said += self.unknown
        said += [say("check.note", note=reason) for reason in self._unread]
        lines = [text.safe(sentence.text(language)) for sentence in said]
        if self._snapshots:
            lines.append(describe(self._snapshots, language))
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {
            "ok": self.ok,
            "findings": [item.to_dict() for item in self.findings],
            "errors": self.errors,
            "unknown": [not_known(gap).to_dict() for gap in self.unknown],
            "runs": [
                {
                    "run": item.run,
                    "notes": item.notes,
                    "optimizers": item.optimizers,
                    "inputs": item.inputs,
                    "damage": str(item.damage),
                }
                for item in self._snapshots
            ],
        }

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        return f"<RunCheck: {len(self.findings)} findings>"


def check_run(path: str | os.PathLike[str], workers: Workers = HERE) -> RunCheck:
    """Look at one run alone; raise UsageError when there is neither a dump nor a snapshot."""
    path = os.fspath(path)
    try:
        run = open_run(path)
    except UsageError:
        return RunCheck(Run(path, []), read_snapshots(path), workers)
    try:
        snapshots = read_snapshots(path)
    except UsageError:
        if not run.folders:
            raise
        snapshots = []
    return RunCheck(run, snapshots, workers)


def check(a: str | os.PathLike[str], b: str | os.PathLike[str] | None = None) -> Check | RunCheck:
    """Look at one run, or compare the circumstances of two runs, or two checkpoints.

    Args:
        a: A, the golden one: a dump_path, a step or rank folder in it, a run.json, or a checkpoint (.ckpt,
            .safetensors, .npz, .pt, .bin). Without ``b`` the run to look at.
        b: B, yours.

    Raises:
        UsageError: when there is no snapshot, or a file cannot be read.

    Example::

        assert probe.check("golden", "mine").ok
        print(probe.check("mine"))
    """
    return check_run(a) if b is None else check_two(a, b)
