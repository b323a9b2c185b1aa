# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The numbers of a step that its trend lines show: the loss, and the norms of the gradients."""

from __future__ import annotations

from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, DEBUG, GRADIENT
from probe.reading.dumps.updates import is_update, series
from probe.reading.dumps.values import element_count, is_tensor, leaves, real
from probe.reading.report.part import StepNumbers


def add_numbers(numbers: StepNumbers, side: str, dump: Dump) -> None:
    """Add the numbers of a dump to those of its step; ``side`` is "a" or "b"."""
    found = loss(dump)
    if found is not None:
        numbers.losses[side] = found
    numbers.norms[side] = gradient_norms(dump)
    numbers.updates[side] = update_numbers(dump)


def loss(dump: Dump) -> tuple[str, float] | None:
    """Return the call whose output is the loss, and its number; None where there is none.

    That is a value saved under a name with "loss" in it. Else it is the last output of one element before the backward.
    """
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
    given = [part] if is_tensor(part) else [leaf for _, leaf in leaves(part) if is_tensor(leaf)]
    if len(given) == 1 and element_count(given[0].get("shape")) == 1 and "Float" in str(given[0].get("dtype")):
        return real(given[0].get("Mean", given[0].get("Max")))
    return None


def update_numbers(dump: Dump) -> dict[str, float]:
    """Return learning rate and global norm of the first update of an optimizer; {} where there is none."""
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        if is_update(parts, dump.data[name]):
            found: dict[str, float] = {}
            for key, value in series(name, dump.data[name]):
                found.setdefault(key[len(name) + 1 :].partition(".")[0], value)
            return found
    return {}


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
