# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of a step that the trend lines of a report show: the loss, the norms of gradients, numbers of updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, DEBUG, GRADIENT
from probe.reading.dumps.updates import is_update, series
from probe.reading.dumps.values import count_of, is_tensor, leaves, real, tensors


@dataclass
class StepNumbers:
    """The numbers of one step that lines show."""

    #: side -> (name of the call, the number)
    losses: dict[str, tuple[str, float]] = field(default_factory=dict)
    #: side -> tensor -> norm, of the gradients of parameters
    norms: dict[str, dict[str, float]] = field(default_factory=dict)
    #: side -> number of the first update of an optimizer -> value: learning rate and global norm
    updates: dict[str, dict[str, float]] = field(default_factory=dict)


def add_numbers(numbers: StepNumbers, side: str, dump: Dump) -> None:
    """Add the numbers of a dump to those of its step; ``side`` is "a" or "b"."""
    found = loss(dump)
    if found is not None:
        numbers.losses[side] = found
    numbers.norms[side] = gradient_norms(dump)
    numbers.updates[side] = update_numbers(dump)


def loss(dump: Dump) -> tuple[str, float] | None:
    """Return the call whose output is the loss, and its number; None where there is none."""
    # a value saved under a name with "loss" in it; else the last output of one element before the backward
    found = None
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        entry = dump.data[name]
        if parts.kind == DEBUG and "loss" in parts.api.lower() and parts.direction != BACKWARD:
            value = _scalar(entry)
            if value is not None:
                return name, value
        if parts.direction == BACKWARD:
            if found:
                return found
        elif isinstance(entry, dict):
            value = _scalar(entry.get("output"))
            found = (name, value) if value is not None else found
    return found


def _scalar(part: Any) -> float | None:
    """Return the number in a part of an entry that is one tensor of one element with fractions."""
    given = [record for _, record in tensors("", part)]
    if len(given) != 1:
        return None
    (record,) = given
    if count_of(record) != 1 or "Float" not in str(record.get("dtype")):
        return None
    return real(record.get("Mean", record.get("Max")))


def update_numbers(dump: Dump) -> dict[str, float]:
    """Return learning rate and global norm of the first update of an optimizer; {} where there is none."""
    found: dict[str, float] = {}
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        entry = dump.data[name]
        if is_update(parts, entry):
            for key, value in series(name, entry):
                own = key[len(name) + 1 :]
                number, _, _ = own.partition(".")
                found.setdefault(number, value)
            return found
    return found


def gradient_norms(dump: Dump) -> dict[str, float]:
    """Return gradient of a parameter -> its norm."""
    found = {}
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        if parts.kind == GRADIENT:
            for key, record in leaves(dump.data[name]):
                norm = real(record.get("Norm")) if is_tensor(record) else None
                if norm is not None:
                    found[f"{name}.{key}"] = norm
    return found
