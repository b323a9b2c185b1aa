# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment about backwards of the user's own: a ``bprop`` or a ``_Function`` beside central differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probe.findings.sentence import say
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, FORWARD
from probe.reading.dumps.flow import Frame, user_frame
from probe.reading.dumps.run import open as open_run
from probe.search.cause import REPLAYED, RULE, Cause
from probe.search.lab import CALLS, Lab
from probe.search.ledger import Result
from probe.search.recordings import RECORD

GRADIENTS = "gradients"
#: so many backwards are compared, one of each kind
_MOST = 4
#: names of functions that are a backward
_NAMES = ("bprop", "backward")
#: a straight-through estimator has the gradient of another function on purpose
_ON_PURPOSE = "replay.constant"


def own_backwards(lab: Lab) -> dict[str, int]:
    """Return the backwards of the user's own in the first recorded step, one of each kind, with the step."""
    if not lab.has_steps(RECORD):
        return {}
    dump = next(iter(open_run(lab.place(RECORD, "dump"))))
    found: dict[str, str] = {}
    for call in dump:
        parts = call.parts
        is_own = parts.key.startswith("Primitive.fn:") and parts.api in _NAMES
        if is_own and parts.direction == BACKWARD:
            found.setdefault(parts.key, call.name)
    step = dump.step or 0
    dump.release()
    return dict.fromkeys(list(found.values())[:_MOST], step)


def gradients(lab: Lab) -> Result:
    """Record the arrays of one step, and compare each backward of the user's own with central differences."""
    wanted = own_backwards(lab)
    step = next(iter(wanted.values()))
    done = lab.record(GRADIENTS, lab.wishes.repeated, [step], [*CALLS, "--task", "tensor"])
    if not lab.has_steps(GRADIENTS):
        learned = say("find.record_none", reason=done.words)
        return Result(GRADIENTS, "failed", learned, done.seconds)
    seconds = done.seconds
    verdicts = set()
    for name in wanted:
        judged = f"{GRADIENTS}_judged"
        words = ["replay", lab.place(GRADIENTS, "dump"), name, "--gradients", "--json"]
        seconds += lab.read(judged, words).seconds
        verdict, times = _verdict(lab.answer(judged))
        verdicts.add(verdict)
        if verdict == "wrong":
            facts = {"name": name, "step": step, **_code(lab, name)}
            learned = say("find.gradient_wrong", name=name, times=times)
            return Result(GRADIENTS, "wrong", learned, seconds, facts=facts)
    if verdicts == {"ok"}:
        return Result(GRADIENTS, "right", say("find.gradient_right", names=[*wanted]), seconds)
    learned = say("find.gradient_unknown", names=[*wanted])
    return Result(GRADIENTS, "unknown", learned, seconds)


def wrong_backward(result: Result | None) -> Cause | None:
    """Return the backward as a cause; None where none is wrong."""
    if result is None or result.outcome != "wrong":
        return None
    return Cause(result.learned, REPLAYED, "gradient", RULE, **dict(result.facts))


def _verdict(rows: Any) -> tuple[str, float]:
    """Return "wrong", "ok" or "unknown", and by how much a wrong gradient is too large."""
    places = [place for row in rows or () for place in row["outputs"]]
    for place in places:
        if place["verdict"] == "wrong" and place["key"] != _ON_PURPOSE:
            return "wrong", float(place["facts"].get("times", 0.0))
    are_right = bool(places) and all(place["verdict"] == "ok" for place in places)
    return ("ok" if are_right else "unknown"), 0.0


def _code(lab: Lab, name: str) -> dict[str, Any]:
    """Return the last line of a backward's own code that made a call; that of its forward where none did."""
    dump = next(iter(open_run(lab.place(RECORD, "dump"))))
    calls = list(dump)
    place = next(number for number, call in enumerate(calls) if call.name == name)
    frame = _last_line(calls[:place]) or _forward_line(dump, name)
    dump.release()
    if frame is None:
        return {}
    return {"file": frame.file, "line": frame.line, "source": frame.source}


def _last_line(calls: Sequence[Any]) -> Frame | None:
    """Return the line of the call right before, if it is in a backward."""
    for call in reversed(calls):
        if call.parts.direction == FORWARD:
            frame = user_frame(call.stack)
            return frame if frame is not None and frame.function in _NAMES else None
    return None


def _forward_line(dump: Dump, name: str) -> Frame | None:
    forward = f"{name.removesuffix(BACKWARD)}{FORWARD}"
    return user_frame(dump[forward].stack) if forward in dump else None
