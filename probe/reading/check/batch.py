# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The batch of a step: the inputs of the model, and the arguments of the functions that are differentiated."""

from __future__ import annotations

import os
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.reading.check.snapshot import Described, RunSnapshot
from probe.reading.dumps import entry_name
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.folders import find_folders
from probe.reading.dumps.values import Record, is_tensor, leaves

#: stands between the number of a gradient function in its step, and the place of an argument
_MARK = ":"
_GIVEN = ("input_args", "input_kwargs")


def batches_of(run: RunSnapshot) -> dict[int, Described]:
    """Return the values that entered each step from outside, by step and place: "0" of the model, "0:1" of a function.

    The number before the mark counts the gradient functions of the step.
    """
    found = {step: dict(inputs) for step, inputs in run.inputs.items()}
    for step, calls in run.gradient_calls.items():
        batch = found.setdefault(step, {})
        for number, call in enumerate(calls):
            for place, value in call.arguments.items():
                batch[f"{number}{_MARK}{place}"] = value
    return found


def is_argument(place: str) -> bool:
    """Return whether a place of a batch is that of an argument.

    >>> is_argument("0:1"), is_argument("mask")
    (True, False)
    """
    return _MARK in place


def call_number(place: str) -> int:
    """Return the number of the gradient function that an argument's place has.

    >>> call_number("2:0.mask")
    2
    """
    return int(place.partition(_MARK)[0])


def label(run: RunSnapshot, step: int, place: str) -> Any:
    """Return the words for a place of a batch, as a fact: "0", or "labels of loss_of"."""
    if not is_argument(place):
        return place
    inner = place.partition(_MARK)[2]
    call = run.gradient_calls[step][call_number(place)]
    return say("check.argument", name=call.name(inner), function=call.function)


def dump_of(run: RunSnapshot, step: int) -> Dump | None:
    """Return the dump of a step of the same rank; None where there is none that can be read."""
    rank = os.path.dirname(os.path.abspath(run.path))
    root = os.path.dirname(os.path.dirname(rank))
    folder = os.path.join(root, f"step{step}", os.path.basename(rank))
    try:
        dump = Dump(find_folders(folder)[0])
        dump.data  # noqa: B018  # read now
    except UsageError:
        return None
    return dump


def is_made(dump: Dump, value: Record) -> bool:
    """Return whether a recorded call made this value: then it is no part of the batch.

    A call that was given the value before one has made it shows that it came from outside.
    """
    wanted = content_key(value)
    if wanted is None:
        return False
    for name, entry in dump.data.items():
        if not isinstance(entry, dict) or entry_name.parse(name).direction != FORWARD:
            continue
        if any(_has(entry.get(part), wanted) for part in _GIVEN):
            return False
        if _has(entry.get("output"), wanted):
            return True
    return False


def _has(part: Any, wanted: tuple[Any, ...]) -> bool:
    """Return whether a part of an entry has a tensor of this content."""
    return any(is_tensor(record) and content_key(record) == wanted for _, record in leaves(part))
