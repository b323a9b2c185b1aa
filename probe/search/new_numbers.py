# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment without a run: which number of the optimizer is another one than in the first recorded steps?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probe.findings.sentence import say
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.updates import by_parameter, is_update
from probe.search.cause import GUESS, LINES, Cause
from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.new_lines import symptom_step
from probe.search.recordings import FIRST_STEPS, RECORD

NEW_NUMBERS = "new_numbers"
#: the call of an update, the number, and the parameter
Key = tuple[str, str, str]


def new_numbers(lab: Lab) -> Result:
    """Compare the numbers of the updates in the step of the symptom with those of the first steps."""
    step = symptom_step(lab)
    early: dict[Key, set[float]] = {}
    late: dict[Key, float] = {}
    for dump in open_run(lab.place(RECORD, "dump")):
        for key, value in _numbers(dump):
            if dump.step == step:
                late[key] = value
            elif dump.step in FIRST_STEPS:
                early.setdefault(key, set()).add(value)
        dump.release()
    for key, value in late.items():
        before = early.get(key, set())
        if len(before) == 1 and value not in before:  # a schedule has changed it before
            facts = {"call": key[0], "number": key[1], "before": before.pop(), "value": value}
            learned = say("find.new_number", step=step, **facts)
            return Result(NEW_NUMBERS, "found", learned, runs=0, facts={**facts, "step": step})
    return Result(NEW_NUMBERS, "none", say("find.no_new_number", step=step), runs=0)


def guessed_number(result: Result | None) -> Cause | None:
    """Return the number as a cause, which is a guess; None where there is none."""
    if result is None or result.outcome != "found":
        return None
    call = result.facts["call"]
    return Cause(result.learned, LINES, "optimizer", GUESS, name=call, step=result.facts["step"])


def _numbers(dump: Dump) -> Iterator[tuple[Key, float]]:
    """Yield the numbers of the updates of a step."""
    for call in dump:
        if not is_update(call.parts, call.entry):
            continue
        numbers: dict[str, Any] = by_parameter(call.entry)
        for number, values in numbers.items():
            for parameter, value in values.items():
                yield (call.name, number, parameter), value
