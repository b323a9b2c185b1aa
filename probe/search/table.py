# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The table of experiments, in the order of what they cost and tell."""

from __future__ import annotations

from probe.search.experiment import Experiment, Outcome, Price
from probe.search.float32 import FLOAT32, can_widen, widen, widened_steps
from probe.search.graft import GRAFT, can_graft, graft, grafted_steps
from probe.search.kernel_replay import REPLAY, can_replay, replay, replayed_steps
from probe.search.lab import Lab
from probe.search.new_lines import NEW_LINES, new_lines, symptom_step
from probe.search.new_numbers import NEW_NUMBERS, new_numbers
from probe.search.new_values import NEW_VALUES, new_values
from probe.search.own_backward import GRADIENTS, gradients, own_backwards
from probe.search.recordings import (
    RECORD,
    RECORD_GOLDEN,
    record,
    record_golden,
)
from probe.search.repeating import REPEAT, can_repeat, repeat, repeated_steps, suspect
from probe.search.watching import (
    CUT,
    LOST,
    NO_TIME,
    OFFSET,
    WATCH,
    WATCH_GOLDEN,
    WATCH_RESUMED,
    watch,
    watch_golden,
    watch_resumed,
)

#: the first experiment
FIRST = WATCH
#: the times of a step by that of a bare one: docs/performance.md
_MONITORED = 1.1
_RECORDED = 2.5
_ARRAYS = 3.2
#: experiments after the first
_AFTER_FIRST = (WATCH_RESUMED, WATCH_GOLDEN, RECORD)
#: experiments about a suspect; without one about the step of the symptom
_ABOUT_SUSPECT = (REPEAT, GRAFT, REPLAY, FLOAT32, GRADIENTS, NEW_LINES)
#: experiments after the second record; the last two where the difference may be chance
_AFTER_REPEAT = (REPLAY, FLOAT32, GRADIENTS, NEW_LINES)


def _has_golden_program(lab: Lab) -> bool:
    return lab.wishes.golden is not None


def _is_resumed(lab: Lab) -> bool:
    return lab.wishes.resumed is not None


def _has_symptom_alone(lab: Lab) -> bool:
    return suspect(lab) is None and symptom_step(lab) is not None


def _has_own_backward(lab: Lab) -> bool:
    return suspect(lab) is None and bool(own_backwards(lab))


def _always(lab: Lab) -> bool:
    return True


#: each experiment by its name
EXPERIMENTS = {
    item.name: item
    for item in (
        Experiment(
            WATCH,
            "find.ask_watch",
            Price(1, is_whole=True, ratio=_MONITORED),
            _always,
            watch,
            {
                "symptom": Outcome("find.mean_symptom", _AFTER_FIRST),
                "quiet": Outcome("find.mean_quiet", _AFTER_FIRST),
                OFFSET: Outcome("find.mean_offset", _AFTER_FIRST),
                CUT: Outcome("find.mean_cut", _AFTER_FIRST),
                NO_TIME: Outcome("find.mean_no_time"),
                "fails": Outcome("find.mean_fails", _AFTER_FIRST),
                "no_steps": Outcome("find.mean_no_steps"),
            },
        ),
        Experiment(
            WATCH_RESUMED,
            "find.ask_watch_resumed",
            Price(1, is_whole=True, ratio=_MONITORED),
            _is_resumed,
            watch_resumed,
            {
                "symptom": Outcome("find.mean_symptom", (WATCH_GOLDEN, RECORD)),
                "quiet": Outcome("find.mean_quiet", (WATCH_GOLDEN, RECORD)),
                OFFSET: Outcome("find.mean_offset", (WATCH_GOLDEN, RECORD)),
                LOST: Outcome("find.mean_lost", (WATCH_GOLDEN, RECORD)),
                CUT: Outcome("find.mean_cut", (WATCH_GOLDEN, RECORD)),
                NO_TIME: Outcome("find.mean_no_time"),
                "fails": Outcome("find.mean_fails", (WATCH_GOLDEN, RECORD)),
                "no_steps": Outcome("find.mean_no_resumed"),
            },
        ),
        Experiment(
            WATCH_GOLDEN,
            "find.ask_watch_golden",
            Price(1, is_whole=True, ratio=_MONITORED),
            _has_golden_program,
            watch_golden,
            {
                "differs": Outcome("find.mean_apart", (RECORD,)),
                "agrees": Outcome("find.mean_equal", (RECORD,)),
                "unknown": Outcome("find.mean_partly_equal", (RECORD,)),
                "no_steps": Outcome("find.mean_no_golden", (RECORD,)),
                NO_TIME: Outcome("find.mean_no_golden", (RECORD,)),
            },
        ),
        Experiment(
            RECORD,
            "find.ask_record",
            Price(1, recorded=5, ratio=_RECORDED),
            _always,
            record,
            {
                "cause": Outcome("find.mean_named", (RECORD_GOLDEN, *_ABOUT_SUSPECT)),
                "no_cause": Outcome("find.mean_unnamed", (RECORD_GOLDEN, *_ABOUT_SUSPECT)),
                "nothing": Outcome("find.mean_no_steps"),
            },
        ),
        Experiment(
            RECORD_GOLDEN,
            "find.ask_record_golden",
            Price(1, recorded=5, ratio=_RECORDED),
            _has_golden_program,
            record_golden,
            {
                "cause": Outcome("find.mean_named", _ABOUT_SUSPECT),
                "no_cause": Outcome("find.mean_unnamed", _ABOUT_SUSPECT),
                "nothing": Outcome("find.mean_no_golden", _ABOUT_SUSPECT),
            },
        ),
        Experiment(
            REPEAT,
            "find.ask_repeat",
            Price(1, recorded=5, ratio=_RECORDED),
            can_repeat,
            repeat,
            {
                "repeats": Outcome("find.mean_repeats", (GRAFT, *_AFTER_REPEAT)),
                "varies": Outcome("find.mean_varies", _AFTER_REPEAT),
                "nothing": Outcome("find.mean_no_steps", _AFTER_REPEAT),
            },
            repeated_steps,
        ),
        Experiment(
            GRAFT,
            "find.ask_graft",
            Price(3, recorded=3, ratio=_ARRAYS),
            can_graft,
            graft,
            {
                "goes": Outcome("find.mean_goes", (REPLAY,)),
                "stays": Outcome("find.mean_stays", (REPLAY,)),
                "failed": Outcome("find.mean_failed", (REPLAY,)),
            },
            grafted_steps,
        ),
        Experiment(
            REPLAY,
            "find.ask_replay",
            Price(1, recorded=1, ratio=_ARRAYS),
            can_replay,
            replay,
            {
                "right": Outcome("find.mean_right", (FLOAT32,)),
                "wrong": Outcome("find.mean_wrong", (FLOAT32,)),
                "unknown": Outcome("find.mean_unjudged", (FLOAT32,)),
                "failed": Outcome("find.mean_failed", (FLOAT32,)),
            },
            replayed_steps,
        ),
        Experiment(
            FLOAT32,
            "find.ask_float32",
            Price(8),
            can_widen,
            widen,
            {
                "goes": Outcome("find.mean_goes"),
                "stays": Outcome("find.mean_stays", (GRADIENTS, NEW_LINES)),
                "failed": Outcome("find.mean_failed", (GRADIENTS, NEW_LINES)),
            },
            widened_steps,
        ),
        Experiment(
            GRADIENTS,
            "find.ask_gradients",
            Price(1, recorded=1, ratio=_ARRAYS),
            _has_own_backward,
            gradients,
            {
                "wrong": Outcome("find.mean_gradient"),
                "right": Outcome("find.mean_gradient_right", (NEW_LINES,)),
                "unknown": Outcome("find.mean_unjudged_gradient", (NEW_LINES,)),
                "failed": Outcome("find.mean_failed", (NEW_LINES,)),
            },
        ),
        Experiment(
            NEW_LINES,
            "find.ask_new_lines",
            Price(0),
            _has_symptom_alone,
            new_lines,
            {
                "found": Outcome("find.mean_new_line"),
                "none": Outcome("find.mean_no_new_line", (NEW_NUMBERS,)),
            },
        ),
        Experiment(
            NEW_NUMBERS,
            "find.ask_new_numbers",
            Price(0),
            _has_symptom_alone,
            new_numbers,
            {
                "found": Outcome("find.mean_new_line"),
                "none": Outcome("find.mean_no_new_number", (NEW_VALUES,)),
            },
        ),
        Experiment(
            NEW_VALUES,
            "find.ask_new_values",
            Price(0),
            _has_symptom_alone,
            new_values,
            {
                "found": Outcome("find.mean_new_line"),
                "none": Outcome("find.mean_no_new_value"),
            },
        ),
    )
}
