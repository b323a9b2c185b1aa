# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the pipeline stages of a run together: one document, with the layers numbered as in the whole model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from probe.reading.compare.layouts.renaming import renamings
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.document import Document
from probe.reading.dumps.entry_name import BACKWARD, parse


class Stages:
    """The documents of the stages, one for each in their order, put together."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self._constructs = [document.construct() for document in documents]
        self.renamings = renamings(documents)  # the names of each stage in the whole
        self.stage_of: dict[str, int] = {}  # entry name -> the number of its stage
        self.data: dict[str, Any] = {}
        if len(documents) == 1:
            self.data = documents[0].data
            self.stage_of = dict.fromkeys(self.data, 0)
            return
        phases = [
            _phases(list(document.data), construct)
            for document, construct in zip(documents, self._constructs)
        ]
        for stage, names in enumerate(phases):
            self._put(stage, names.forwards)
        for stage, names in reversed(list(enumerate(phases))):
            self._put(stage, names.backwards)
        for stage, names in enumerate(phases):
            self._put(stage, names.rest)

    def _put(self, stage: int, names: Iterable[str]) -> None:
        """Put entries of a stage behind those of the whole; the first of several of one name counts."""
        for name in names:
            whole = self.renamings[stage](name)
            if whole not in self.data:
                self.data[whole] = self.documents[stage].data[name]
                self.stage_of[whole] = stage

    def document(self) -> Document:
        """Return the whole as one document."""
        first = self.documents[0]
        notes = [note for document in self.documents for note in document.notes]
        return Document(dict(first.header), self.data, self._stacks, self.construct, notes)

    def _stacks(self) -> dict[str, list[str]]:
        whole: dict[str, list[str]] = {}
        for renamed_to, document in zip(self.renamings, self.documents):
            for name, frames in document.stacks().items():
                whole[renamed_to(name)] = frames
        return whole

    def construct(self) -> dict[str, str | None]:
        """Return the Cell around every entry."""
        whole: dict[str, str | None] = {}
        for renamed_to, construct in zip(self.renamings, self._constructs):
            for name, parent in construct.items():
                whole[renamed_to(name)] = renamed_to(parent) if parent else None
        return whole


class _Phases(NamedTuple):
    """The names of the entries of a stage."""

    forwards: list[str]
    backwards: list[str]
    rest: list[str]  # the calls after all backwards


def _phases(names: list[str], construct: Mapping[str, str | None]) -> _Phases:
    """Return the names of a stage; a collective between backwards is one of them."""
    directions = [parse(name).direction for name in names]
    ends = [place for place, direction in enumerate(directions) if direction == BACKWARD]
    last = ends[-1] if ends else len(names)
    phases = _Phases([], [], names[last + 1 :])
    is_backward = False
    for name, direction in zip(names[: last + 1], directions):
        parent = construct.get(name)
        if direction == BACKWARD or (parent and parse(parent).direction == BACKWARD):
            is_backward = True
        elif parent or not is_collective(parse(name)):
            is_backward = False
        if is_backward:
            phases.backwards.append(name)
        else:
            phases.forwards.append(name)
    return phases


def has_micro_batches(names: Iterable[str]) -> bool:
    """Return whether forwards and backwards take turns.

    >>> has_micro_batches(["Mint.exp.0.forward", "Mint.exp.0.backward", "Mint.exp.1.forward", "Mint.exp.1.backward"])
    True
    """
    parsed = [parse(name) for name in names]
    directions = [parts.direction for parts in parsed if not is_collective(parts)]
    turns = list(itertools.groupby(directions))
    return len(turns) > 3
