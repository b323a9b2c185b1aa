# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment without a run: which value from outside, such as a batch, is far larger than in the steps before?"""

from __future__ import annotations

from collections.abc import Iterator

from probe.findings.sentence import say
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.values import real
from probe.search.cause import GUESS, LINES, Cause
from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.new_lines import symptom_step
from probe.search.recordings import RECORD

NEW_VALUES = "new_values"
#: so many times larger than in each recorded step before
_LARGER = 10.0
#: a call, and the place of the value in it
Key = tuple[str, str]


def new_values(lab: Lab) -> Result:
    """Compare the values that no recorded call made with those of the recorded steps before."""
    step = symptom_step(lab)
    before: dict[Key, float] = {}
    for dump in open_run(lab.place(RECORD, "dump")):
        if dump.step is None or step is None or dump.step > step:
            continue
        for key, size in _sizes(dump):
            if dump.step < step:
                before[key] = max(size, before.get(key, 0.0))
            elif 0 < before.get(key, 0.0) * _LARGER < size:
                return _found(lab, dump, key, size, before[key])
        dump.release()
    return Result(NEW_VALUES, "none", say("find.no_new_value", step=step), runs=0)


def guessed_value(result: Result | None) -> Cause | None:
    """Return the value as a cause, which is a guess; None where there is none."""
    if result is None or result.outcome != "found":
        return None
    return Cause(result.learned, LINES, Kind.DATA, GUESS, **dict(result.facts))


def _found(lab: Lab, dump: Dump, key: Key, size: float, before: float) -> Result:
    name, place = key
    facts = {"name": name, "place": place, "step": dump.step}
    learned = say("find.new_value", value=size, before=before, **facts)
    frame = user_frame(dump[name].stack)
    if frame is not None:
        facts.update(file=frame.file, line=frame.line, source=frame.source)
    return Result(NEW_VALUES, "found", learned, runs=0, facts=facts)


def _sizes(dump: Dump) -> Iterator[tuple[Key, float]]:
    """Yield the greatest absolute value of each input of a forward call that no recorded call made."""
    flow = dump.flow
    for position, parts in enumerate(flow.parts):
        if parts.direction != FORWARD:
            continue
        for link in flow.links[position]:
            if link.producer >= 0 or link.parameter is not None:
                continue
            ends = [real(link.record.get(key)) for key in ("Max", "Min")]
            known = [abs(end) for end in ends if end is not None]
            if known:
                yield (flow.names[position], link.place), max(known)
