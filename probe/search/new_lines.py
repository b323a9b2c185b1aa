# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment without a run: which line of code runs in the step of the symptom, and in no recorded step before?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.run import open as open_run
from probe.search.cause import GUESS, LINES, Cause
from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.recordings import RECORD
from probe.search.watching import watched, watched_rows
from probe.series.skipped import skipped_steps

NEW_LINES = "new_lines"


def symptom_step(lab: Lab) -> int | None:
    """Return the first step of the symptom; None without one."""
    steps = [watched(lab, key) for key in ("alarm", "nonfinite")]
    return min((step for step in steps if step is not None), default=None)


def new_lines(lab: Lab) -> Result:
    """Compare the lines of code of the step of the symptom with those of the recorded steps before it.

    A step whose update a loss scaler has skipped lacks the lines of the update: no step is compared with it.
    """
    step = symptom_step(lab)
    skipped = {number for rank in watched_rows(lab) for number in skipped_steps(rank)}
    before: set[tuple[str, int]] = set()
    found: list[dict[str, Any]] = []
    for dump in open_run(lab.place(RECORD, "dump")):
        is_before = dump.step is not None and step is not None and dump.step < step
        if is_before and dump.step not in skipped:
            before |= {(line["file"], line["line"]) for line in _lines(dump)}
        if dump.step == step:
            found += _lines(dump)
        dump.release()
    new = [line for line in found if (line["file"], line["line"]) not in before]
    if not new or not before:
        return Result(NEW_LINES, "none", say("find.no_new_line", step=step), runs=0)
    facts = {**new[0], "step": step}
    return Result(NEW_LINES, "found", _said(facts), runs=0, facts=facts)


def guessed(result: Result | None) -> Cause | None:
    """Return the line as a cause, which is a guess; None where there is none."""
    if result is None or result.outcome != "found":
        return None
    facts = dict(result.facts)
    return Cause(result.learned, LINES, "calls", GUESS, **facts)


def _said(facts: dict[str, Any]) -> Sentence:
    return say("find.new_line", name=facts["name"], step=facts["step"])


def _lines(dump: Dump) -> Iterator[dict[str, Any]]:
    """Yield the line of code of each forward call of a step."""
    for call in dump:
        frame = user_frame(call.stack)
        if frame is not None:
            line = {"file": frame.file, "line": frame.line, "source": frame.source}
            yield {"name": call.name, **line}
