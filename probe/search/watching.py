# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The first experiments: all steps under the monitor, of the program, from a checkpoint on, and of the golden one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any

from probe.findings.sentence import Sentence, say
from probe.findings.system import foreign
from probe.reading.one_run.health.rows import (
    AlarmFinding,
    Rows,
    alarms_of,
    faults_of,
    read_rows,
)
from probe.search.lab import Lab
from probe.search.ledger import Result
from probe.search.resumed_start import resumed_start
from probe.search.running import Done
from probe.search.watch_end import WatchEnd
from probe.search.wishes import Training
from probe.series.file import RankSeries

WATCH = "watch"
WATCH_RESUMED = "watch_resumed"
WATCH_GOLDEN = "watch_golden"
#: the outcome of a run that was ended before its first step
NO_TIME = "no_time"
#: the outcome of a run that was ended before its end, with steps that have no symptom
CUT = "cut"
#: the outcome of a program from a checkpoint on that does not come to the symptom of the first run
LOST = "lost"
SICK = (SYMPTOM, FAILS) = ("symptom", "fails")
#: the outcome of a run in which offsets alone have no gradient or no update
OFFSET = "offset"
#: the rules of a gradient or an update that is zero from the first step on
_NEVER = ("never", "no update")
#: parameters that are added: a norm, a softmax or a difference behind them may cancel them
_OFFSETS = (".bias.grad", ".bias.update", ".beta.grad", ".beta.update")
#: the monitor measures parameters in each step
_MONITOR = ("--task", "monitor", "--interval", "1")
#: the outcome -> the sentence about it
_LEARNED = {
    SYMPTOM: "find.watch_symptom",
    FAILS: "find.watch_fails",
    CUT: "find.watch_cut",
    "quiet": "find.watch_quiet",
    OFFSET: "find.watch_offset",
    LOST: "find.watch_lost",
}


def watch(lab: Lab) -> Result:
    """Run the program up to its end under the monitor."""
    return _symptom_of(lab, WATCH, lab.wishes.training)


def watch_resumed(lab: Lab) -> Result:
    """Run the program from a checkpoint on: its symptom comes in another step, as its steps are counted from there."""
    result = _symptom_of(lab, WATCH_RESUMED, lab.wishes.repeated)
    if "count" not in result.facts:
        return result
    start = resumed_start(lab.place(WATCH, "dump"), lab.place(WATCH_RESUMED, "dump"))
    begin = say("find.start_unknown") if start is None else say("find.start", step=start)
    learned = say("find.resumed", said=result.learned, start=begin)
    facts = {**result.facts, "start": start}
    return Result(result.name, result.outcome, learned, result.seconds, facts=facts)


def watch_golden(lab: Lab) -> Result:
    """Run the golden program under the monitor, and compare the rows of both."""
    golden = lab.wishes.golden
    assert golden is not None  # the table asks for it
    done = _run(lab, WATCH_GOLDEN, golden, watched(lab, "last"))
    rows = read_rows(lab.place(WATCH_GOLDEN, "dump"))
    if not any(rank.steps for rank in rows.ranks):
        return _no_steps(WATCH_GOLDEN, done)
    seen = lab.look(watched_name(lab), lab.place(WATCH_GOLDEN, "dump"))
    step = seen.first_apart
    if step is None and seen.lacks:
        learned = say("find.golden_partly", said=seen.lacks[0])
        return Result(WATCH_GOLDEN, "unknown", learned, done.seconds)
    if step is None:
        learned = say("find.golden_agrees", said=seen.said)
        return Result(WATCH_GOLDEN, "agrees", learned, done.seconds)
    learned = say("find.golden_differs", said=seen.said)
    return Result(WATCH_GOLDEN, "differs", learned, done.seconds, facts={"step": step})


def watched_name(lab: Lab) -> str:
    """Return the experiment whose steps the later ones count: that from a checkpoint on, where there is one."""
    return WATCH_RESUMED if WATCH_RESUMED in lab.ledger.results else WATCH


def watched(lab: Lab, key: str, default: Any = None) -> Any:
    """Return a fact of the steps that later experiments count; the default where it has none."""
    return lab.ledger.fact(watched_name(lab), key, default)


def watched_rows(lab: Lab) -> Sequence[RankSeries]:
    """Return the rows of the monitor of the steps that later experiments count."""
    return read_rows(lab.place(watched_name(lab), "dump")).ranks


def _symptom_of(lab: Lab, name: str, training: Training) -> Result:
    """Run a program under the monitor, and return its symptom."""
    done = _run(lab, name, training, None)
    rows = read_rows(lab.place(name, "dump"))
    if not any(rank.steps for rank in rows.ranks):
        return _no_steps(name, done)
    facts = _facts(rows, done)
    if facts["nonfinite"] is not None or facts["alarm"] is not None:
        outcome = SYMPTOM
    elif done.status:
        outcome = FAILS
    else:
        outcome = _without_symptom(lab, name, done, rows)
    learned = say(_LEARNED[outcome], said=_said(lab, name, done), **_counted(facts))
    return Result(name, outcome, learned, done.seconds, facts=facts)


def _without_symptom(lab: Lab, name: str, done: Done, rows: Rows) -> str:
    """Return the outcome of a run that has no symptom."""
    first = lab.ledger.results.get(WATCH)
    if done.status != 0:
        return CUT
    if name != WATCH and first is not None and first.outcome in SICK:
        return LOST
    return OFFSET if alarms_of(rows.ranks) else "quiet"


def is_offset(alarm: AlarmFinding) -> bool:
    """Return whether an alarm only tells that an offset never changes, which a healthy net may have."""
    return alarm.rule in _NEVER and alarm.name.endswith(_OFFSETS)


def _run(lab: Lab, name: str, training: Training, last: int | None) -> Done:
    """Watch a program, for half of the time that is left at most."""
    dump = lab.place(name, "dump")
    words = ["run", *lab.wishes.options_of_runs, *_MONITOR, "--dump-path", dump, *training.words]
    return lab.do(name, words, WatchEnd(dump, time.monotonic() + lab.left / 2, last))


def _no_steps(name: str, done: Done) -> Result:
    """Return that a program has made no step that can be seen."""
    if done.status is None:
        return Result(name, NO_TIME, say("find.no_time_for_step"), done.seconds)
    words = foreign(done.words.removeprefix("probe: ") or str(done.status))
    learned = say("find.watch_none", reason=words)
    return Result(name, "no_steps", learned, done.seconds, facts={"words": done.words})


def _facts(rows: Rows, done: Done) -> dict[str, Any]:
    """Return the numbers that later experiments need."""
    steps = sorted({step for rank in rows.ranks for step in rank.steps})
    seconds = [float(value) for rank in rows.ranks for value in rank["seconds"].values]
    step_seconds = statistics.median(seconds) if seconds else 0.0
    found = [item for item in alarms_of(rows.ranks) if not is_offset(item)]
    alarms = [item.step for item in found if item.step is not None]
    nonfinite = [item.step for item in faults_of(rows.ranks) if item.step is not None]
    return {
        "count": len(steps),
        "last": steps[-1],
        "step_seconds": step_seconds,
        "start_seconds": max(done.seconds - len(steps) * step_seconds, 0.0),
        "alarm": min(alarms, default=None),
        "nonfinite": min(nonfinite, default=None),
        "status": done.status,
        "words": done.words,
    }


def _counted(facts: dict[str, Any]) -> dict[str, Any]:
    return {"count": facts["count"], "seconds": facts["step_seconds"]}


def _said(lab: Lab, name: str, done: Done) -> Sentence:
    """Return the heaviest finding in the rows; of a program that fails its last line too."""
    seen = lab.look(name)
    if done.is_killed:
        return say("find.killed", said=seen.said)
    if done.status and seen.status != 1:
        return foreign(done.words)
    return seen.said
