# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Calls of one API in a Cell whose inputs only look equal, and that ran in another order.

Statistics of a matrix are those of its transpose. So the outputs, which are exchanged, tell which call is which.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import Pair, Partners
from probe.reading.dumps.entry_name import API, FORWARD
from probe.reading.dumps.values import Record, tensors_in

#: so many calls are compared with each other
_MOST = 32


def exchanged_calls(
    alignment: Partners, pairs: Sequence[Pair], slots: Sequence[list[Slot]]
) -> list[tuple[int, int]]:
    """Return the places in A and in B of calls that are partners by their values."""
    flow_a, flow_b = alignment.flows
    differing: dict[Hashable, list[_Call]] = {}
    for pair, own in zip(pairs, slots):
        parts = flow_a.parts[pair.a]
        if not own or parts.kind != API or parts.direction != FORWARD:
            continue
        if any(slot.is_hard for slot in own if not slot.is_input):
            home = (flow_a.cells[pair.a], flow_b.cells[pair.b], parts.key)
            differing.setdefault(home, []).append(_Call(pair, own))
    found: list[tuple[int, int]] = []
    for calls in differing.values():
        if len(calls) == 1:
            continue
        group = [call.pair for call in calls if _look_equal(call.slots)]
        if 1 < len(group) <= _MOST:
            found += _by_values(alignment, group)
    return found


class _Call(NamedTuple):
    """A call whose outputs differ."""

    pair: Pair
    slots: Sequence[Slot]


def _look_equal(slots: Sequence[Slot]) -> bool:
    """Return whether the inputs of two calls have the same statistics, and no checksums to tell them apart."""
    inputs = [slot for slot in slots if slot.is_input and slot.are_tensors]
    records_a = [slot.a for slot in inputs]
    records_b = [slot.b for slot in inputs]
    has_checksums = any("md5" in record for record in records_a)
    return not has_checksums and _are_near(records_a, records_b)


def _by_values(alignment: Partners, group: Sequence[Pair]) -> list[tuple[int, int]]:
    """Return the partners of calls by their values; none where a call has none or several that are near.

    Lines that were edited are no lines in another order.
    """
    values_b = [(pair.b, _values(alignment, 1, pair.b)) for pair in group]
    found: list[tuple[int, int]] = []
    for pair in group:
        own = _values(alignment, 0, pair.a)
        near = [b for b, values in values_b if _are_near(own, values)]
        if len(near) != 1:
            return []
        found.append((pair.a, near[0]))
    partners = {b for _, b in found}
    if len(partners) != len(group):
        return []
    are_lines = all(alignment.may_be_one_line(a, b) for a, b in found)
    return found if are_lines else []


def _values(alignment: Partners, side: int, place: int) -> list[Record]:
    """Return the outputs of a call, and its inputs."""
    entry = alignment.entry(side, place)
    outputs = tensors_in(entry, "output")
    return [*outputs, *tensors_in(entry, "input_args")]


def _are_near(own: Sequence[Record], others: Sequence[Record]) -> bool:
    """Return whether the values of two calls agree within the tolerance of their dtype."""
    if len(own) != len(others) or not own:
        return False
    for one, other in zip(own, others):
        apart = distance(one, other).rel_l2
        if one.get("shape") != other.get("shape") or apart is None:
            return False
        tolerances = [of_dtype(side.get("dtype")) for side in (one, other)]
        if apart > max(tolerances):
            return False
    return True
