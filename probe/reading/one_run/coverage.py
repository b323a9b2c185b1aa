# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""How much of a run an answer has looked at, and which part of the run cannot be known.

"No fault" and "no NaN/Inf" are said over this alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.naming import ranges
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, parse
from probe.reading.dumps.run import shortened
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import COUNTS, Record, is_tensor, leaves, real
from probe.store.file_names import Rank

#: parts of the names of dtypes whose numbers may be NaN/Inf, in small letters
_CONTINUOUS = ("float", "complex")
_INPUTS = ("input_args", "input_kwargs")


class Coverage(NamedTuple):
    """How much of one step of one rank has numbers."""

    forward: int = 0  # forward entries with numbers
    backward: int = 0  # backward entries with numbers, gradients of parameters too
    tensors: int = 0  # tensors with numbers
    unknown: int = 0  # tensors without Max and Min, which may hold NaN/Inf
    failed: int = 0  # entries that an error of the recorder has left incomplete
    updates: int = 0  # updates of optimizers
    with_inputs: int = 0  # forward entries that have inputs with numbers
    with_outputs: int = 0  # forward entries that have outputs with numbers
    world_size: int = 0  # the number of ranks of the training; 0 where it is not known


def coverage(dump: Dump) -> Coverage:
    """Return how much of a dump has numbers."""
    counts = dict.fromkeys([name for name in Coverage._fields if name != "world_size"], 0)
    for name, entry in dump.data.items():
        if not isinstance(entry, dict):
            continue
        known, unknown = _known_and_not(entry)
        parts = parse(name)
        counts["tensors"] += known
        counts["unknown"] += unknown
        counts["failed"] += bool(entry.get("error"))
        if is_update(parts, entry):
            counts["updates"] += 1
        elif known and parts.direction == BACKWARD:
            counts["backward"] += 1
        elif known:
            counts["forward"] += 1
            counts["with_inputs"] += any(_has_tensor(entry.get(part)) for part in _INPUTS)
            counts["with_outputs"] += _has_tensor(entry.get("output"))
    run = dump.header.get("run")
    size = run.get("world_size") if isinstance(run, dict) else None
    return Coverage(**counts, world_size=size if type(size) is int and 0 < size < 1 << 32 else 0)


def _has_tensor(part: Any) -> bool:
    return any(is_tensor(record) for _, record in leaves(part))


def _known_and_not(entry: dict[str, Any]) -> tuple[int, int]:
    """Return how many tensors of an entry have numbers, and how many may hold NaN/Inf unseen."""
    known = unknown = 0
    for part in entry.values():
        for _, record in leaves(part):
            if is_tensor(record) and not record.get("unwritten"):
                is_known = _is_known(record)
                known += is_known
                unknown += not is_known
    return known, unknown


def _is_known(record: Record) -> bool:
    """Return whether a record tells if its tensor holds NaN/Inf."""
    if real(record.get("Max")) is not None and real(record.get("Min")) is not None:
        return True
    if any(key in record for key in COUNTS):
        return True
    dtype = str(record.get("dtype")).lower()
    shape = record.get("shape")
    is_empty = isinstance(shape, (list, tuple)) and 0 in shape
    return is_empty or not any(word in dtype for word in _CONTINUOUS)


class Looked(NamedTuple):
    """The steps, ranks and entries that an answer has looked at."""

    steps: list[int]
    ranks: list[Rank]
    parts: list[Coverage]  # of each step and rank
    places: frozenset[tuple[int | None, Rank]] = frozenset()  # the steps and ranks that have a dump

    def _sum(self, name: str) -> int:
        return sum(getattr(part, name) for part in self.parts)

    @property
    def has_numbers(self) -> bool:
        """Whether anything was looked at."""
        return bool(self._sum("tensors") or self._sum("updates"))

    @property
    def said(self) -> Sentence:
        """Steps, ranks and entries, as "steps 0-3, 2 ranks: 96 forward and 80 backward entries"."""
        key = "looked.steps" if len(self.steps) > 1 else "looked.step"
        steps = say(key, steps=", ".join(ranges(self.steps))) if self.steps else NOTHING
        ranks = say("looked.ranks", count=len(self.ranks)) if len(self.ranks) > 1 else NOTHING
        forward = self._sum("forward")
        return say(
            "looked", steps=steps, ranks=ranks, forward=forward, backward=self._sum("backward")
        )

    def gaps(self) -> Iterator[Sentence]:
        """Yield the parts that cannot be known, each with the thing to record."""
        known = self._sum("tensors")
        unknown = self._sum("unknown")
        if not self.has_numbers:
            yield say("gap.no_numbers")
        elif unknown:
            yield say("gap.numbers", count=unknown, all=known + unknown)
        if self._sum("failed"):
            yield say("gap.failed", count=self._sum("failed"))
        if self._sum("forward") and self._sum("updates") and not self._sum("backward"):
            yield say("gap.gradients")
        if self._sum("backward") and not self._sum("forward"):
            yield say("gap.forwards")
        if self._sum("forward") and not self._sum("with_outputs"):
            yield say("gap.outputs")
        yield from self._missing_ranks()

    def gaps_of_rules(self) -> Iterator[Sentence]:
        """Yield further parts that the rules of one run need."""
        if self._sum("forward") and not self._sum("with_inputs"):
            yield say("gap.inputs")

    def _missing_ranks(self) -> Iterator[Sentence]:
        size = max((part.world_size for part in self.parts), default=0)
        found = {rank for rank in self.ranks if isinstance(rank, int)}
        missing = [rank for rank in range(min(size, 1 << 16)) if rank not in found] if found else []
        if missing:
            yield say("gap.ranks", ranks=shortened(missing), size=size)
        for rank in self.ranks:
            absent = [step for step in self.steps if (step, rank) not in self.places]
            if absent:
                yield say("gap.steps_of_rank", rank=rank, steps=", ".join(ranges(absent)))


def looked_at(units: Iterable[tuple[int | None, Rank, Coverage]]) -> Looked:
    """Return the scope of an answer over these steps and ranks."""
    listed = list(units)
    steps = sorted({step for step, _, _ in listed if step is not None})
    ranks = list(dict.fromkeys(rank for _, rank, _ in listed))
    places = frozenset((step, rank) for step, rank, _ in listed)
    return Looked(steps, ranks, [part for _, _, part in listed], places)
