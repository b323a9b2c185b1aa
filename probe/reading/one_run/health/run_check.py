# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe.check`` of one run: what it shows by itself, and a description of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, say
from probe.reading.check.check import Check, check as check_two
from probe.reading.check.describe import describe, to_dict
from probe.reading.check.snapshot import RunSnapshot, read_snapshots
from probe.reading.dumps import text
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.work import HERE, Workers
from probe.reading.one_run.health.finding import FAULT, HealthFinding
from probe.reading.one_run.health.look import look_at_run

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]

#: how many findings are shown where nothing is said
ROWS = 12


class RunCheck:
    """The findings in one run.

    Args:
        run: the run; one without a dump is only described.
        snapshots: its snapshots; [] where it has none.
        workers: the processes that read the steps.

    Attributes:
        findings: what was found, the heaviest first.
        errors: the reasons why dumps could not be read.

    Example::

        check = probe.check("dump_path")
        assert check.ok, check
    """

    def __init__(self, run: Run, snapshots: list[RunSnapshot], workers: Workers = HERE) -> None:
        self._run, self._snapshots = run, snapshots
        self.findings: list[HealthFinding]
        self.errors: list[str]
        self.findings, self.errors = look_at_run(run, workers)

    @property
    def ok(self) -> bool:
        """Whether there is no fault; what is only suspicious is none."""
        return not any(item.weight == FAULT for item in self.findings)

    def text(self, language: str, rows: int = ROWS) -> str:
        """Return the findings and the description, in a language: "en" or "zh"; ``rows`` 0 shows all findings."""
        shown = self.findings[:rows] if rows > 0 else self.findings
        lines = [text.safe(item.whole.text(language)) for item in shown]
        if len(shown) < len(self.findings):
            lines.append(say("health.rest", count=len(self.findings) - len(shown)).text(language))
        if not lines and self._run.folders:
            steps = len(self._run.steps) or len(self._run.folders)
            lines.append(say("health.none", count=steps).text(language))
        lines += [text.safe(say("check.note", note=error).text(language)) for error in self.errors]
        return "\n".join([*lines, *([describe(self._snapshots, language)] if self._snapshots else [])])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values of JSON."""
        return {
            "ok": self.ok, "findings": [item.to_dict() for item in self.findings], "errors": self.errors,
            "runs": to_dict(self._snapshots),
        }  # fmt: skip

    def __str__(self) -> str:
        return self.text(ENGLISH)

    def __repr__(self) -> str:
        return f"<RunCheck: {len(self.findings)} findings>"


def check_run(path: Path, workers: Workers = HERE) -> RunCheck:
    """Look at one run alone.

    Args:
        path: a dump_path, a step or rank folder in it, or a run.json.
        workers: the processes that read the steps.

    Raises:
        UsageError: when there is neither a dump nor a snapshot.
    """
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


def check(a: Path, b: Path | None = None) -> Check | RunCheck:
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
