# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Experiments that record steps with all calls: of the program, and of the golden one."""

from __future__ import annotations

from collections.abc import Sequence

from probe.findings.sentence import say
from probe.reading.dumps.run import open as open_run
from probe.search.lab import CALLS, NUMBERS, Lab
from probe.search.ledger import Result
from probe.search.on_disk import DiskLook
from probe.search.running import Done
from probe.search.watching import WATCH_GOLDEN, watched, watched_rows

RECORD = "record"
RECORD_GOLDEN = "record_golden"
#: the first steps, which rules of one run need
FIRST_STEPS = (0, 1, 2)
#: the steps of a golden dump that are recorded beside it
_MOST_BESIDE = 4
_GUARD = ("--saved-tensors",)
#: two optimizers may have equal numbers, and differ in their states alone
_STATES = ("--optimizer", "states")
#: sentences that begin with their step
_PLACED = ("guard.at", "report.in_series")
#: levels at which a program can be recorded as its golden dump was
_LEVELS = ("L0", "L1", "mix")


def wanted_steps(lab: Lab) -> list[int]:
    """Return the steps to record: the first ones, those of the symptom, and each one before."""
    golden = lab.wishes.golden_path
    if golden:
        return sorted(step for step in open_run(golden).steps if step is not None)[:_MOST_BESIDE]
    last = watched(lab, "last", FIRST_STEPS[-1])
    found = {step for step in FIRST_STEPS if step <= last}
    symptoms = [watched(lab, "alarm"), watched(lab, "nonfinite")]
    symptoms.append(lab.ledger.fact(WATCH_GOLDEN, "step"))
    if watched(lab, "status"):
        symptoms.append(last)
    for step in symptoms:
        if step is not None:
            found |= {max(step - 1, 0), step}
    return sorted(found)


def calls_of(lab: Lab) -> Sequence[str]:
    """Return the options that say which calls are recorded: all with their states, or those of a golden dump."""
    for dump in open_run(lab.wishes.golden_path) if lab.wishes.golden_path else ():
        level = dump.header.get("level")
        return ("--level", level) if level in _LEVELS else CALLS
    return (*CALLS, *_STATES)


def record(lab: Lab) -> Result:
    """Record the steps of the symptom, and look at them."""
    steps = wanted_steps(lab)
    done = lab.record(RECORD, lab.wishes.repeated, steps, [*calls_of(lab), *NUMBERS, *_GUARD])
    if not lab.has_steps(RECORD):
        return nothing(RECORD, done)
    seen = _look(lab, lab.wishes.golden_path)
    return _looked(RECORD, seen, steps, done)


def record_golden(lab: Lab) -> Result:
    """Record the same steps of the golden program, and compare."""
    golden = lab.wishes.golden
    assert golden is not None  # the table asks for it
    steps = wanted_steps(lab)
    done = lab.record(RECORD_GOLDEN, golden, steps, [*calls_of(lab), *NUMBERS])
    if not lab.has_steps(RECORD_GOLDEN):
        return nothing(RECORD_GOLDEN, done)
    seen = _look(lab, lab.place(RECORD_GOLDEN, "dump"))
    return _looked(RECORD_GOLDEN, seen, steps, done)


def final_look(lab: Lab) -> DiskLook | None:
    """Return the answer of all readers about the recorded steps, beside the golden ones if there are any."""
    if RECORD not in lab.ledger.results or not lab.has_steps(RECORD):
        return None
    golden = lab.wishes.golden_path
    if RECORD_GOLDEN in lab.ledger.results and lab.has_steps(RECORD_GOLDEN):
        golden = lab.place(RECORD_GOLDEN, "dump")
    return _look(lab, golden)


def _look(lab: Lab, golden: str) -> DiskLook:
    """Ask all readers about the recorded steps; the watched ones may contradict a rule about them."""
    return lab.look(RECORD, golden, lambda: watched_rows(lab))


def look_alone(lab: Lab) -> DiskLook:
    """Return the answer of all readers about the recorded steps of the program, without the golden ones."""
    return _look(lab, "")


def golden_dump(lab: Lab) -> str:
    """Return the dump that ``final_look`` compares with; "" for none."""
    if RECORD_GOLDEN in lab.ledger.results and lab.has_steps(RECORD_GOLDEN):
        return lab.place(RECORD_GOLDEN, "dump")
    return lab.wishes.golden_path


def nothing(name: str, done: Done) -> Result:
    """Return that an experiment has recorded no step."""
    return Result(name, "nothing", say("find.record_none", reason=done.words), done.seconds)


def _looked(name: str, seen: DiskLook, steps: Sequence[int], done: Done) -> Result:
    outcome = "cause" if seen.cause is not None else "no_cause"
    shown = ",".join(map(str, steps))
    is_placed = seen.said.key in _PLACED
    learned = seen.said if is_placed else say("find.recorded", steps=shown, said=seen.said)
    return Result(name, outcome, learned, done.seconds)
