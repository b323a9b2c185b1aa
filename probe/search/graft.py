# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An experiment about one suspect: its golden output and gradients are put in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.dump import Call
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.run import open as open_run
from probe.reading.dumps.values import tensors_in
from probe.search.cause import BITS, COMPARED, Cause
from probe.search.lab import CALLS, NUMBERS, Lab, failed
from probe.search.ledger import Result
from probe.search.recordings import RECORD, golden_dump, wanted_steps
from probe.search.repeating import REPEAT, suspect
from probe.search.watching import WATCH_GOLDEN, watched, watched_name

GRAFT = "graft"
#: steps behind that of the cause, in which the losses must agree
_BEHIND = 2
#: the part by which healed losses may differ from the golden ones
_HEALED = 1e-6
#: how many times farther the unchanged losses must be
_FARTHER = 100.0
#: the first words of the names of Cells, and of modules of torch
_CELLS = ("Cell.", "Module.")
#: kinds of differences whose call has the same name in the golden run
_SAME_NAME = frozenset((Kind.ARGUMENT, Kind.COMPUTATION, Kind.OPTIMIZER))


def can_graft(lab: Lab) -> bool:
    """Return whether equal bits lead up to a call whose golden output can be put in its place."""
    cause = suspect(lab)
    if cause is None or lab.wishes.golden is None or cause.step is None or lab.wishes.ranks > 1:
        return False
    if lab.wishes.seed is not None:  # probe try takes no seed before the program
        return False
    repeats = lab.ledger.results.get(REPEAT)
    is_exact = cause.reader == COMPARED and cause.strength == BITS
    return (
        is_exact
        and repeats is not None
        and repeats.outcome == "repeats"
        and _is_in_first_step(lab, grafted(lab, cause))
    )


def _is_in_first_step(lab: Lab, name: str) -> bool:
    """Return whether the first recorded step has a call: the program that is given its golden output looks there."""
    first = next(iter(open_run(lab.place(RECORD, "dump"))))
    return bool(name) and any(call.name.startswith(f"{name}.{FORWARD}") for call in first)


def grafted(lab: Lab, cause: Cause) -> str:
    """Return the call that gets its golden output: the call itself, or the Cell around it; "" for none.

    It proves nothing of a wrong gradient: the golden outputs of a late call give golden losses, whatever
    gradients the calls before it get.
    """
    if cause.kind in (Kind.DATA, Kind.GRADIENT, Kind.PARAMETER):
        return ""
    if cause.kind in _SAME_NAME and _has_golden_shape(lab, cause):
        return cause.call
    return f"{_kind_of_cells(lab)}.{cause.cell}" if cause.cell else ""


def _has_golden_shape(lab: Lab, cause: Cause) -> bool:
    """Return whether the outputs of a call have the shapes that they have in the golden run, or are not recorded."""
    shapes = [
        [record.get("shape") for record in tensors_in(dump.data.get(cause.name), "output")]
        for path in (lab.place(RECORD, "dump"), golden_dump(lab))
        for dump in open_run(path)
        if dump.step == cause.step
    ]
    return len(shapes) < 2 or shapes[0] == shapes[1]


def _kind_of_cells(lab: Lab) -> str:
    """Return the first word of the names of Cells, or of modules of torch."""
    dump = next(iter(open_run(lab.place(RECORD, "dump"))))
    return "Module" if dump.header.get("framework") == "mindtorch" else "Cell"


def graft(lab: Lab) -> Result:
    """Record the arrays of the golden call, and put them in: the losses tell whether the symptom goes."""
    cause = suspect(lab)
    program = lab.wishes.golden
    assert cause is not None
    assert program is not None
    name = grafted(lab, cause)
    steps = _steps(lab, cause)
    last = steps[-1]
    arrays = f"{GRAFT}_arrays"
    options = ("--tensor-list", _arrays_of(name), "--optimizer", "states")
    first = lab.record(arrays, program, steps, [*CALLS, *NUMBERS, *options])
    if not lab.has_steps(arrays):
        return failed(GRAFT, first)
    words = ["try", *lab.wishes.options, "--from", lab.place(arrays, "dump"), name]
    words += ["--steps", str(last + 1), "-o", lab.place(GRAFT, "runs"), "--json", "-"]
    second = lab.do(GRAFT, [*words, *lab.wishes.repeated.words])
    seconds = first.seconds + second.seconds
    answer = lab.answer(GRAFT)
    if not answer:
        return failed(GRAFT, second, seconds, 3)
    # a program may show a loss behind the last step, which got no golden output
    unchanged = in_steps(answer["unchanged"], steps)
    golden = in_steps(losses_of(lab, WATCH_GOLDEN) or answer["golden"], steps)
    is_healed = heals(unchanged, in_steps(answer["changed"], steps), golden)
    if not is_healed and not _repeats(unchanged, losses_of(lab, watched_name(lab))):
        return Result(GRAFT, "failed", say("find.graft_varies"), seconds, 3)
    outcome = "goes" if is_healed else "stays"
    key = "find.graft_goes" if is_healed else "find.graft_stays"
    learned = say(key, name=name, first=steps[0], last=last)
    facts = {"name": name, "further": 0 if is_healed else _further_calls(lab, cause)}
    return Result(GRAFT, outcome, learned, seconds, 3, facts)


def _steps(lab: Lab, cause: Cause) -> list[int]:
    """Return the steps whose losses must heal: from that in which the cause acts on."""
    begin = cause.acts_in if cause.acts_in is not None else cause.step
    assert begin is not None
    last = min(begin + _BEHIND, watched(lab, "last", begin))
    return list(range(begin, last + 1))


def grafted_steps(lab: Lab) -> list[int]:
    """Return the steps with golden outputs."""
    cause = suspect(lab)
    return wanted_steps(lab) if cause is None or cause.step is None else _steps(lab, cause)


def _further_calls(lab: Lab, cause: Cause) -> int:
    """Return how many other calls the line of the cause has in its step."""
    for path in (lab.place(RECORD, "dump"), golden_dump(lab)):
        for dump in open_run(path):
            if dump.step == cause.step and cause.name in dump.data:
                line = _line_of(dump[cause.name])
                calls = [call for call in dump if call.parts.direction == FORWARD]
                same = [call for call in calls if line is not None and _line_of(call) == line]
                return max(len(same) - 1, 0)
    return 0


def _line_of(call: Call) -> tuple[str, int] | None:
    """Return file and number of the line of a call; None without a stack."""
    frame = user_frame(call.stack)
    return None if frame is None else (frame.file, frame.line)


def losses_of(lab: Lab, name: str) -> dict[str, Any]:
    """Return the step and the loss of a watched run, as the monitor has seen it; nothing where it has none.

    The monitor measures all three runs. The loss of a dump may have the factor of a loss scale.
    """
    try:
        steps, losses = open_run(lab.place(name, "dump")).series("loss")
    except (KeyError, UsageError):
        return {}
    return {
        str(step): float(loss) if math.isfinite(loss) else str(loss)
        for step, loss in zip(steps, losses)
    }


def in_steps(losses: Mapping[str, Any], steps: Sequence[int]) -> dict[str, Any]:
    """Return the losses of some steps, if there are any.

    >>> in_steps({"0": 2.0, "3": 1.5}, [0, 1])
    {'0': 2.0}
    """
    return {str(step): losses[str(step)] for step in steps if str(step) in losses}


def _repeats(unchanged: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether the losses of a run are those of another run of the program, in all steps that both have."""
    steps = unchanged.keys() & known.keys()
    return all(_apart(unchanged[step], known[step]) <= _HEALED for step in steps)


def _arrays_of(name: str) -> str:
    """Return the text that the names of a call have; of a Cell also those of the Cells in it, for their gradients.

    The golden program may have an optimizer of another class in the place of this one.
    """
    return f"{name.rpartition('.')[0]}." if name.startswith(_CELLS) else f"{name}."


def heals(
    unchanged: Mapping[str, Any], changed: Mapping[str, Any], golden: Mapping[str, Any]
) -> bool:
    """Return whether a change makes the difference from the golden losses go.

    >>> golden = {"3": 2.0, "4": 1.5}
    >>> heals({"3": 2.0, "4": 1.7}, golden, golden), heals(golden, golden, golden)
    (True, False)
    """
    steps = golden.keys() & unchanged.keys() & changed.keys()
    before = max((_apart(unchanged[step], golden[step]) for step in steps), default=0.0)
    after = max((_apart(changed[step], golden[step]) for step in steps), default=1.0)
    return after <= _HEALED and before > _FARTHER * max(after, _HEALED / _FARTHER)


def _apart(loss: Any, golden: Any) -> float:
    """Return the relative distance of two losses; NaN/Inf are texts, and far from each number."""
    if isinstance(loss, str) or isinstance(golden, str):
        return 0.0 if loss == golden else 1.0
    return float(abs(loss - golden) / max(abs(golden), abs(loss), 1e-30))
