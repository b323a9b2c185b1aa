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
#: step -> the number
Values = dict[int, float]
#: a number that a schedule changes leaps where it changes by this factor
_LEAP = 5.0


def new_numbers(lab: Lab) -> Result:
    """Compare the numbers of the updates in the step of the symptom with those of the steps before."""
    step = symptom_step(lab)
    recorded: dict[Key, Values] = {}
    for dump in open_run(lab.place(RECORD, "dump")):
        if dump.step is not None:
            for key, value in _numbers(dump):
                recorded.setdefault(key, {})[dump.step] = value
        dump.release()
    for (call, number, _), values in recorded.items():
        if step is None or step not in values:
            continue
        known = {"call": call, "number": number, "value": values[step]}
        early = [values[first] for first in _first_steps(values, step)]
        if len(set(early)) == 1 and _is_far(early[0], values[step]):
            first = min(at for at, value in values.items() if value == values[step])
            facts = {**known, "step": first, "before": early[0]}
            learned = say("find.new_number", **facts)
        elif _leaps(values, step):  # beyond the schedule that has changed it before
            facts = {**known, "step": step, "before": values[step - 1]}
            learned = say("find.leaping_number", **facts)
        else:
            continue
        return Result(NEW_NUMBERS, "found", learned, runs=0, facts=facts)
    return Result(NEW_NUMBERS, "none", say("find.no_new_number", step=step), runs=0)


def _first_steps(values: Values, step: int) -> list[int]:
    return [first for first in FIRST_STEPS if first in values and first != step]


def _leaps(values: Values, step: int) -> bool:
    """Return whether a number changes by a far larger factor than between the first steps."""
    early = [first for first in _first_steps(values, step) if first < step]
    factors = [_factor(values, first) for first in early if first - 1 in values]
    return _factor(values, step) >= max(_LEAP, *factors, 1.0)


def _is_far(before: float, value: float) -> bool:
    """Return whether two numbers are so far apart as no schedule moves them at once.

    >>> _is_far(0.01, 0.004), _is_far(0.01, 0.1), _is_far(0.0, 0.01), _is_far(0.9, -0.9)
    (False, True, True, True)
    """
    if before == value:
        return False
    return before * value <= 0 or _ratio(before, value) >= _LEAP


def _factor(values: Values, step: int) -> float:
    """Return the factor by which a number grows or falls from the step before; 1.0 where none is known."""
    return _ratio(values.get(step - 1, 0.0), values[step])


def _ratio(one: float, other: float) -> float:
    """Return by which factor two numbers differ; 1.0 where one is zero."""
    small, great = sorted((abs(one), abs(other)))
    return great / small if small > 0 else 1.0


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
