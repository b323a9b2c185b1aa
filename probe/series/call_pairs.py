# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the calls of two runs with rolling records: the first step that leaves the noise, and the call.

Both runs choose the same calls in the same steps, so each number has its counterpart. A call is to blame whose outputs
differ by more than its inputs do: behind it the inputs differ too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.naming import BACKWARD, FORWARD, MODULES
from probe.series.call_file import CallContent, Head
from probe.series.series_name import HIGH
from probe.store.file_names import Rank

SAME = 1e-6  # a smaller part of a tensor's largest number is no difference
_NOISE = 10.0  # so many times the largest difference of the rounds before leaves the noise
_CANCELLED = (
    1e-3  # so small a part of what a call is given is left where all cancels: it is rounding
)
_MASK = (
    1e4  # an end that is so large, and so many times the other one, is a mask: it hides differences
)
_ROUNDING = 1e-3  # a larger difference in the first record of a call is no noise
_ENDS = ("max", "min")


@dataclass(frozen=True)
class CallDifference(Finding):
    """The call with which two runs with rolling records begin to differ.

    Attributes:
        entry: its entry, as "Functional.relu.0.forward"; "" where no call differs by more than its inputs.
        step: the step in which it was recorded.
        first: the first step in which a call leaves the noise: record this one as a whole.
        rank: the rank of B.
        said: one sentence about it.
    """

    entry: str
    step: int
    first: int
    rank: Rank
    said: Sentence


class Apart(NamedTuple):
    """By how much a call differs in one step, as parts of the largest numbers of its tensors."""

    entry: str
    step: int
    inputs: float
    outputs: float
    has_bits: bool = False  # bits were compared: a difference is 1

    @property
    def excess(self) -> float:
        """How many times more the outputs differ than the inputs."""
        return self.outputs / max(self.inputs, SAME)


def compare_calls(
    left: CallContent, right: CallContent, rank: Rank = None, factor: float = 1.0
) -> tuple[CallDifference | None, int]:
    """Return the first difference, or None, and the number of records that were compared.

    ``factor`` multiplies the tolerance.
    """
    steps = list(_steps(left, right))
    count = sum(len(calls) for _, calls in steps)
    place = _first_apart([calls for _, calls in steps], SAME * factor)
    if place is None:
        return None, count
    first = steps[place][0]
    last = first + _round(left)
    later = [call for step, calls in steps[place:] if step < last for call in calls]
    return _difference(first, later, rank), count


def _first_apart(steps: Sequence[Sequence[Apart]], tolerance: float) -> int | None:
    """Return the place of the first step in which a call leaves the noise; None where all agree.

    A small difference in the first record of a call may be noise, as of another processor: a later one that is far
    larger comes first.
    """
    noise: dict[str, float] = {}
    early: int | None = None
    for place, calls in enumerate(steps):
        for call in calls:
            size = max(call.inputs, call.outputs)
            known = noise.get(call.entry)
            noise[call.entry] = max(size, known or 0.0)
            if size <= tolerance:
                continue
            if size > (_ROUNDING if known is None else _NOISE * known):
                return place
            early = place if early is None else early
    return early


def _difference(first: int, calls: Sequence[Apart], rank: Rank) -> CallDifference:
    # the weights of a Cell are not among its inputs; those of a function are
    functions = [call for call in calls if not call.entry.startswith(MODULES)]
    found = max(functions or calls, key=lambda call: call.excess)
    if found.excess < 2:
        key = "calls.apart_bits_before" if found.has_bits else "calls.apart_before"
        return CallDifference("", found.step, first, rank, say(key, first=first))
    more = NOTHING if functions else say("calls.apart_cell")
    place = {"entry": found.entry, "step": found.step, "first": first, "more": more}
    said = say("calls.apart", inputs=found.inputs, outputs=found.outputs, **place)
    if found.has_bits:
        said = say("calls.apart_bits", **place)
    return CallDifference(found.entry, found.step, first, rank, said)


def _round(calls: CallContent) -> int:
    """Return the number of steps of a round: the smallest distance of two records of an entry."""
    last: dict[str, int] = {}
    sizes = []
    for step, records in calls.records():
        for head, _ in records:
            if head.entry in last:
                sizes.append(step - last[head.entry])
            last[head.entry] = step
    return min((size for size in sizes if size > 0), default=1)


def _steps(left: CallContent, right: CallContent) -> Iterator[tuple[int, list[Apart]]]:
    """Yield the steps that both have, each with the calls that both have recorded."""
    others = {step: dict(records) for step, records in right.records()}
    for step, group in groupby(left.records(), key=lambda item: item[0]):
        own: dict[Head, Any] = {}
        for _, records in group:
            own.update(records)
        yield step, compare_records(step, own, others.get(step, {}))


def compare_records(
    step: int, left: Mapping[Head, Sequence[float]], right: Mapping[Head, Sequence[float]]
) -> list[Apart]:
    """Return by how much each call differs that both sides have recorded in a step."""
    sizes = {head.entry: _sizes(head, left[head], right[head]) for head in left if head in right}
    return [_apart(step, entry, sizes) for entry in sizes]


def _apart(step: int, entry: str, sizes: Mapping[str, Mapping[str, Size]]) -> Apart:
    own = sizes[entry]
    given = [size for place, size in own.items() if place.startswith("input")]
    made = [size for place, size in own.items() if place.startswith("output")]
    floor = 0.0
    if f".{BACKWARD}" in entry:  # it uses the values of the forward too
        floor = _CANCELLED * max((size.largest for size in given), default=0.0)
        given += sizes.get(entry.replace(f".{BACKWARD}", f".{FORWARD}"), {}).values()
    inputs = max((size.part for size in given), default=0.0)
    outputs = max((size.part * _above(size.largest, floor) for size in made), default=0.0)
    has_bits = any(size.is_of_bits for size in own.values())
    return Apart(entry, step, inputs, outputs, has_bits)


def _above(largest: float, floor: float) -> float:
    return largest / floor if largest < floor else 1.0


class Size(NamedTuple):
    """By how much a tensor differs."""

    part: float  # as a part of its largest numbers
    largest: float  # its largest element
    is_of_bits: bool = False  # the part is 1 where a bit differs


def _sizes(head: Head, left: Sequence[float], right: Sequence[float]) -> dict[str, Size]:
    """Return by how much each tensor differs."""
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    for column, a, b in zip(head.columns, left, right):
        place, _, statistic = column.rpartition(".")
        pairs.setdefault(place, {})[statistic] = (float(a), float(b))
    return {place: _size(row) for place, row in pairs.items()}


def _size(row: Mapping[str, tuple[float, float]]) -> Size:
    if HIGH in row:
        return Size(float(any(a != b for a, b in row.values())), 1.0, is_of_bits=True)
    ends = [row[name] for name in _ENDS if name in row]
    every = [*ends, *(row[name] for name in ("norm", "mean") if name in row)]
    if any(math.isfinite(a) != math.isfinite(b) for a, b in every):
        return Size(math.inf, math.inf)
    sizes = [max(abs(a), abs(b)) for a, b in ends if math.isfinite(a)]
    largest = max(sizes, default=0.0)
    if len(sizes) == len(_ENDS) and largest >= _MASK * max(1.0, min(sizes)):
        largest = min(sizes)  # the other end is a mask
    parts = [_part(*row.get("norm", (0.0, 0.0)))]
    if largest:
        parts += [abs(a - b) / max(largest, abs(a)) for a, b in ends if math.isfinite(a) and a != b]
    return Size(max(parts), largest)


def _part(left: float, right: float) -> float:
    """Return a difference as a part of the larger number.

    >>> _part(1.0, 2.0), _part(0.0, 0.0), _part(math.inf, math.inf)
    (0.5, 0.0, 0.0)
    """
    return 0.0 if left == right else abs(left - right) / max(abs(left), abs(right))
