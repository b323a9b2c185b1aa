# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The experiment that records the program once more: a difference is no cause where the program differs from itself."""

from __future__ import annotations

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.answer.comparison import Comparison, compare
from probe.reading.compare.judging.verdicts import Verdict
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.dumps.run import open as open_run
from probe.search.cause import COMPARED, Cause
from probe.search.lab import NUMBERS, Lab
from probe.search.ledger import Result
from probe.search.random_calls import random_alone
from probe.search.recordings import (
    RECORD,
    calls_of,
    final_look,
    golden_dump,
    look_alone,
    nothing,
    wanted_steps,
)
from probe.search.watching import WATCH_GOLDEN

REPEAT = "repeat"
#: the first steps are recorded once more, and all recorded ones up to that of the cause
_FIRST = 2
#: kinds of differences that a call makes by itself
_MADE = (Kind.RANDOM, Kind.COMPUTATION, Kind.GRADIENT, Kind.COMMUNICATION)


def can_repeat(lab: Lab) -> bool:
    """Return whether a reader names a cause; or two runs differ, and nobody knows whether that is chance."""
    return _named(lab) is not None or _is_apart(lab)


def repeat(lab: Lab) -> Result:
    """Record the steps up to that of the cause once more, and compare their bits."""
    cause = _named(lab)
    steps = repeated_steps(lab)
    done = lab.record(REPEAT, lab.wishes.repeated, steps, [*calls_of(lab), *NUMBERS])
    if not lab.has_steps(REPEAT):
        return nothing(REPEAT, done)
    shown = ",".join(map(str, steps))
    found = compare(lab.place(RECORD, "dump"), lab.place(REPEAT, "dump"), step=shown)
    if have_equal_bits(found):
        learned = say("find.repeats", steps=shown)
        return Result(REPEAT, "repeats", learned, done.seconds)
    first = found.first
    if first is None:
        return Result(REPEAT, "varies", say("find.last_bits"), done.seconds)
    facts = {
        "name": first.name,
        "kind": first.kind,
        "is_later": cause is not None and _is_later(lab, first, cause),
    }
    return Result(REPEAT, "varies", say("find.varies", said=first.said), done.seconds, facts=facts)


def repeated_steps(lab: Lab) -> list[int]:
    """Return the steps to record once more."""
    steps = wanted_steps(lab)
    cause = _named(lab)
    if cause is None and _is_apart(lab):
        return steps
    last = None if cause is None or cause.reader != COMPARED else cause.acts_in
    return [step for step in steps if step in steps[:_FIRST] or (last is not None and step <= last)]


def have_equal_bits(found: Comparison) -> bool:
    """Return whether two runs have the same bits. Memory that no kernel has written has no checksum, and none tells."""
    others = set(found.verdicts) - {Verdict.BITS, Verdict.UNKNOWN}
    return found.agrees and not others


def suspect(lab: Lab) -> Cause | None:
    """Return the cause that the readers name; where the difference may be chance that of the program alone."""
    seen = look_alone(lab) if chance(lab) else final_look(lab)
    return None if seen is None else seen.cause


def chance(lab: Lab) -> Sentence:
    """Return why the difference from the golden run may be chance; NOTHING where it is none, or nobody knows."""
    cause = _named(lab)
    if not _is_apart(lab) or (cause is not None and cause.reader != COMPARED):
        return NOTHING
    result = lab.ledger.results.get(REPEAT)
    if result is not None and result.outcome == "varies" and result.facts.get("is_later") is False:
        is_made = result.facts["kind"] in _MADE
        key = "find.varies_itself" if is_made else "find.varies_before"
        return say(key, name=result.facts["name"])
    if cause is None:
        return NOTHING
    return random_alone(cause, lab.place(RECORD, "dump"), golden_dump(lab))


def _is_apart(lab: Lab) -> bool:
    """Return whether two runs differ, in the recorded steps or in the watched ones."""
    seen = final_look(lab)
    if seen is None or not golden_dump(lab):
        return False
    return seen.is_apart or lab.ledger.fact(WATCH_GOLDEN, "step") is not None


def _named(lab: Lab) -> Cause | None:
    seen = final_look(lab)
    return None if seen is None else seen.cause


def _is_later(lab: Lab, first: Origin, cause: Cause) -> bool:
    """Return whether the program differs from itself behind the cause alone; False where nobody knows."""
    if cause.reader != COMPARED or first.step is None or cause.acts_in is None:
        return False
    if first.step != cause.acts_in:
        return bool(first.step > cause.acts_in)
    for path in (lab.place(RECORD, "dump"), golden_dump(lab)):
        for dump in open_run(path):
            names = list(dump.data)
            if dump.step == cause.acts_in and {first.name, cause.name} <= set(names):
                return bool(names.index(first.name) > names.index(cause.name))
    return False
