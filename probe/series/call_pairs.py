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

from probe.findings.sentence import Finding, Sentence, say
from probe.naming import BACKWARD, FORWARD, MODULES
from probe.series.call_file import CallContent, Head
from probe.store.file_names import Rank

SAME = 1e-6  # a smaller part of a tensor's largest number is no difference
_NOISE = 10.0  # so many times the largest difference of the rounds before leaves the noise
_ENDS = ("max", "min", "mean", "norm")


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
    tolerance = SAME * factor
    noise: dict[str, float] = {}
    count = 0
    for place, (step, calls) in enumerate(steps):
        count += len(calls)
        is_apart = False
        for call in calls:
            size = max(call.inputs, call.outputs)
            known = noise.get(call.entry)
            is_apart |= size > tolerance and (known is None or size > _NOISE * known)
            noise[call.entry] = max(size, known or 0.0)
        if is_apart:
            later = steps[place : place + _round(left)]
            count += sum(len(found) for _, found in steps[place + 1 :])
            return _difference(step, [call for _, found in later for call in found], rank), count
    return None, count


def _difference(first: int, calls: Sequence[Apart], rank: Rank) -> CallDifference:
    # the weights of a Cell are not among its inputs; those of a function are
    functions = [call for call in calls if not call.entry.startswith(MODULES)]
    found = max(functions or calls, key=lambda call: call.excess)
    numbers = {"inputs": found.inputs, "outputs": found.outputs}
    said = say("calls.apart", entry=found.entry, step=found.step, first=first, **numbers)
    if found.excess < 2:
        said = say("calls.apart_before", first=first)
        return CallDifference("", found.step, first, rank, said)
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
        theirs = others.get(step, {})
        sizes = {
            head.entry: _sizes(head, own[head].tolist(), theirs[head].tolist())
            for head in own
            if head in theirs
        }
        yield step, [_apart(step, entry, sizes) for entry in sizes]


def _apart(step: int, entry: str, sizes: Mapping[str, Mapping[str, float]]) -> Apart:
    own = sizes[entry]
    used = [size for place, size in own.items() if place.startswith("input")]
    if f".{BACKWARD}" in entry:  # it uses the values of the forward too
        used += sizes.get(entry.replace(f".{BACKWARD}", f".{FORWARD}"), {}).values()
    made = [size for place, size in own.items() if place.startswith("output")]
    return Apart(entry, step, max(used, default=0.0), max(made, default=0.0))


def _sizes(head: Head, left: Sequence[float], right: Sequence[float]) -> dict[str, float]:
    """Return by how much each tensor differs, as a part of its largest number."""
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    for column, *pair in zip(head.columns, left, right):
        place, _, statistic = column.rpartition(".")
        pairs.setdefault(place, {})[statistic] = (pair[0], pair[1])
    return {place: _size(row) for place, row in pairs.items()}


def _size(row: Mapping[str, tuple[float, float]]) -> float:
    found = [row[name] for name in _ENDS if name in row]
    if any(math.isfinite(a) != math.isfinite(b) for a, b in found):
        return math.inf
    largest = max(map(abs, (*row.get("max", (0.0, 0.0)), *row.get("min", (0.0, 0.0)))))
    sizes = [
        abs(a - b) / (max(abs(a), abs(b)) if name == "norm" else largest)
        for name, (a, b) in zip(row, row.values())
        if name in _ENDS and math.isfinite(a) and a != b
    ]
    return max(sizes, default=0.0)
