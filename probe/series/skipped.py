# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Steps whose update a loss scaler has left out: NaN/Inf in their gradients is a normal event of a loss scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from probe.naming import BACKWARD
from probe.series.alarm import Alarm
from probe.series.file import RankSeries
from probe.series.series_name import kind_of, parse, slot_of

#: the name of the rule about NaN/Inf
NONFINITE = "NaN/Inf"
OF_CALLS = "call NaN/Inf"  # the rule about calls of rolling records
GOOD = "good"
SKIPPED = "skipped"
BAD = "bad"
OTHER = "other"
#: kinds of series of gradients
_GRADIENTS = ("grad", "grad_in", "total")
#: kinds of series that only a step with an update has
_OF_UPDATES = ("update", "scalar")


#: the kind of series of a loss scale
_SCALE = "scale"


def is_of_skip(alarm: Alarm, skipped: Collection[int]) -> bool:
    """Return whether an alarm is about NaN/Inf in gradients of a step whose update was skipped."""
    is_of_gradient = alarm.rule == NONFINITE or (
        alarm.rule == OF_CALLS and f".{BACKWARD}" in alarm.series
    )
    return is_of_gradient and alarm.step in skipped


class StepState(NamedTuple):
    """A step, as far as loss scalers are concerned."""

    step: int
    #: "good" with an update and without NaN/Inf; "skipped" with NaN/Inf in gradients alone and without an update;
    #: "bad" with other NaN/Inf
    state: str


def normal_skips(states: Sequence[StepState]) -> frozenset[int]:
    """Return the steps whose update was skipped, and after which the training went on as before.

    There is none where more than half of the steps behind the first update are skipped: then the scale falls without
    end. Steps behind the last update are none where NaN/Inf stays, or where they are more in a row than ever before.
    """
    good = [place for place, item in enumerate(states) if item.state == GOOD]
    if not good:
        return frozenset()
    training = states[good[0] :]
    if 2 * len(_skipped(training)) > len(training):
        return frozenset()
    ended = states[: good[-1] + 1]
    rest = states[good[-1] + 1 :]
    goes_on = all(item.state != BAD for item in rest) and len(_skipped(rest)) <= _longest(ended)
    return _skipped(states) if goes_on else _skipped(ended)


def _skipped(states: Sequence[StepState]) -> frozenset[int]:
    return frozenset(item.step for item in states if item.state == SKIPPED)


def _longest(states: Sequence[StepState]) -> int:
    """Return how many steps in a row were skipped at most."""
    longest = count = 0
    for item in states:
        count = count + 1 if item.state == SKIPPED else 0
        longest = max(longest, count)
    return longest


def states_of(rank: RankSeries) -> list[StepState]:
    """Return the state of each step in the rows of the monitor."""
    return [StepState(step, _state(values)) for step, values in rank.rows()]


def _state(values: Mapping[str, float]) -> str:
    strange = [
        name
        for name, value in values.items()
        if not math.isfinite(value) and kind_of(name) != "call"
    ]
    has_update = any(kind_of(name) in _OF_UPDATES for name in values)
    if not strange:
        return GOOD if has_update else OTHER
    return SKIPPED if not has_update and all(map(_is_gradient, strange)) else BAD


def _is_gradient(name: str) -> bool:
    slot = slot_of(name)
    return slot.is_backward if slot is not None else parse(name).kind in _GRADIENTS


def skipped_steps(rank: RankSeries) -> frozenset[int]:
    """Return the steps in the rows of the monitor whose update a loss scaler has left out."""
    return normal_skips(states_of(rank))


def is_skipped_now(values: Mapping[str, float]) -> bool:
    """Return whether a row alone tells that a loss scaler skips its update: it has a loss scale, and no update.

    >>> is_skipped_now({"loss": 1.0, "fc.weight.grad": math.inf, "loss_scale": 1024.0})
    True
    >>> is_skipped_now({"loss": 1.0, "fc.weight.grad": math.inf})
    False
    """
    has_scale = any(kind_of(name) == _SCALE for name in values)
    return has_scale and _state(values) == SKIPPED


def judged_rows(rank: RankSeries) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the rows without NaN/Inf in the gradients of steps that a loss scaler has skipped."""
    skipped = skipped_steps(rank)
    for step, values in rank.rows():
        if step in skipped:
            yield step, {name: value for name, value in values.items() if math.isfinite(value)}
        else:
            yield step, values
