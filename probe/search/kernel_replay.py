# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment about one suspect: its call is made again in float64."""

from __future__ import annotations

from probe.findings.sentence import say
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.entry_name import CELL, parse
from probe.search.cause import COMPARED, NONFINITE
from probe.search.lab import CALLS, Lab, failed
from probe.search.ledger import Result
from probe.search.recordings import wanted_steps
from probe.search.repeating import suspect

REPLAY = "replay"
#: the outcome -> the sentence about it
_REPLAYED = {
    "right": "find.replay_right",
    "wrong": "find.replay_wrong",
    "unknown": "find.replay_unknown",
}


def can_replay(lab: Lab) -> bool:
    """Return whether the suspect is one call of an operator."""
    cause = suspect(lab)
    if cause is None or cause.step is None or not cause.name:
        return False
    is_made = cause.reader == NONFINITE and cause.kind == "made"
    is_computed = cause.reader == COMPARED and cause.kind == Kind.COMPUTATION
    return (is_made or is_computed) and parse(cause.name).kind != CELL


def replay(lab: Lab) -> Result:
    """Record the arrays of the suspect, and make it again in float64."""
    cause = suspect(lab)
    assert cause is not None
    assert cause.step is not None
    options = ("--task", "tensor", "--list", cause.call)
    first = lab.record(REPLAY, lab.wishes.repeated, [cause.step], [*CALLS, *options])
    if not lab.has_steps(REPLAY):
        return failed(REPLAY, first)
    arrays = lab.place(REPLAY, "dump")
    words = ["replay", arrays, cause.name, "--step", str(cause.step), "--json"]
    judged = f"{REPLAY}_judged"
    second = lab.read(judged, words)
    found = lab.answer(judged)
    seconds = first.seconds + second.seconds
    verdicts = {item["verdict"] for item in found} if isinstance(found, list) else set()
    outcome = _outcome(verdicts)
    learned = say(_REPLAYED[outcome], name=cause.name)
    return Result(REPLAY, outcome, learned, seconds)


def _outcome(verdicts: set[str]) -> str:
    """Return whether a kernel is right, by the verdicts on its outputs."""
    if "wrong" in verdicts:
        return "wrong"
    return "right" if verdicts == {"ok"} else "unknown"


def replayed_steps(lab: Lab) -> list[int]:
    """Return the step of the suspect."""
    cause = suspect(lab)
    return wanted_steps(lab) if cause is None or cause.step is None else [cause.step]
