# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The collectives that add up: their sum, and the term of the rank."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.reading.compare.layouts.entries import GIVEN, tensors_given, values
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.entry_name import FORWARD, EntryName
from probe.reading.dumps.values import Leaf, Record, is_tensor, plain

#: operations of collectives that add nothing up
_NO_SUMS = ("max", "min", "prod", "avg", "mean")


class Sum(NamedTuple):
    """The sum that a collective gives."""

    place: str
    record: Record
    term: Record  # the tensor of the rank that it adds up


def sum_of(parts: EntryName, entry: Any) -> Sum | None:
    """Return the sum of an entry; None for another call than a collective that adds up."""
    api = parts.api.lower()
    if parts.direction != FORWARD or not is_collective(parts) or "reduce" not in api:
        return None
    total = _first_output(entry)
    given = list(tensors_given(entry).values())
    if total is None or not given or not _adds(entry):
        return None
    place, record = total
    return Sum(place, record, _term(api, record, given))


def _first_output(entry: Any) -> Leaf | None:
    """Return the place and the record of the first tensor that a call gives."""
    for place, leaf in values(entry):
        if place.startswith("output.") and is_tensor(leaf):
            return place, leaf
    return None


def _term(api: str, made: Record, given: list[Record]) -> Record:
    """Return the tensor that a collective adds up: it has the shape of the sum, or another one if that is divided."""
    shape = made.get("shape")
    like = [record for record in given if record.get("shape") == shape]
    unlike = [record for record in given if record.get("shape") != shape]
    if unlike and api.startswith(("reduce_scatter", "reducescatter")):
        return unlike[0]
    return like[0] if like else given[-1]


def _adds(entry: Any) -> bool:
    """Return whether a collective adds up: its operation is a sum, or the one that it has by default."""
    for place, leaf in values(entry):
        if place.startswith(GIVEN) and not is_tensor(leaf):
            operation = plain(leaf)
            if isinstance(operation, str) and operation.lower() in _NO_SUMS:
                return False
    return True
