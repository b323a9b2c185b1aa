# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One step as the rules see it: parameters by their names, their uses and gradients, updates, losses; and findings."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, CELL, FORWARD, GRADIENT, EntryName
from probe.reading.dumps.flow import user_frame
from probe.reading.dumps.updates import by_parameter, gradients, is_update, parameter_names
from probe.reading.dumps.values import (
    Record,
    element_count,
    grouped,
    is_tensor,
    leaves,
    real,
    tensors_in,
)
from probe.store.file_names import Rank

FAULT, SUSPICIOUS, NOTE = WEIGHTS = ("fault", "suspicious", "note")
_WORDS = {FAULT: "health.fault", SUSPICIOUS: "health.suspicious", NOTE: "health.note"}


@dataclass(frozen=True)
class HealthFinding(Finding):
    """Something that one run shows by itself."""

    weight: str  # "fault", "suspicious" or "note"; a healthy training has no fault
    rule: str  # the rule's name
    said: Sentence  # one sentence about it
    name: str = ""  # the call or the parameter
    step: int | None = None  # the first step in which it was seen; None for all
    cell: str | None = None  # path and class of the Cell around the call
    file: str | None = None  # the innermost line of the user's code: its file, number and text
    line: int | None = None
    source: str | None = None
    rank: Rank = None
    more: int = 0  # how many further places have the same fault
    parameters: Sequence[str] = ()  # all parameters that it is about

    @property
    def whole(self) -> Sentence:
        """Weight, sentence, Cell and line of code."""
        return say(
            "health.line",
            weight=say(_WORDS[self.weight]),
            said=self.said,
            cell=say("health.in_cell", cell=self.cell) if self.cell else NOTHING,
            code=say("health.code", file=self.file, line=self.line) if self.file else NOTHING,
            more=say("health.and_more", count=self.more) if self.more else NOTHING,
        )


def guarded(said: Sentence, step: int | None, rank: Rank) -> HealthFinding:
    """Return what a guard has told while the training ran."""
    weight = SUSPICIOUS if said.key == "guard.shared" else FAULT
    return HealthFinding(weight, "guard", said, step=step, rank=rank)


def not_known(said: Sentence) -> HealthFinding:
    """Return a part of a run that cannot be known, as a finding."""
    return HealthFinding(NOTE, "not known", said)


def norm(record: Any) -> float | None:
    """Return the norm of a tensor; None where it is not known, or this is none."""
    return real(record.get("Norm")) if is_tensor(record) else None


def is_zero(records: list[Any]) -> bool:
    """Return whether there is a tensor, and all of them are zeros."""
    norms = [norm(record) for record in records if is_tensor(record)]
    return bool(norms) and not any(value is None or value for value in norms)


class Update:
    """The update of an optimizer: its entry, and the place of the entry in the step."""

    def __init__(self, name: str, position: int, entry: Any) -> None:
        self.name = name
        self.position = position
        #: parameter -> the record of the gradient that entered
        self.entered: dict[str, Any] = dict(zip(parameter_names(entry), gradients(entry)))
        self.numbers = by_parameter(entry)  # number -> parameter -> value

    def number(self, key: str, parameter: str, default: float = 0.0) -> float:
        """Return a number of the update of one parameter."""
        return self.numbers.get(key, {}).get(parameter, default)


class Step:
    """One step of one rank: its dump, the dataflow, the snapshot of the rank if there is one, the updates in order."""

    def __init__(self, dump: Dump, snapshot: RunSnapshot | None) -> None:
        self.dump = dump
        self.snapshot = snapshot
        self.flow = dump.flow
        self.updates: list[Update] = []
        for place, (name, parts) in enumerate(zip(self.flow.names, self.flow.parts)):
            entry = dump.data[name]
            if is_update(parts, entry):
                self.updates.append(Update(name, place, entry))
        #: (path of a Cell, name in it) -> the parameter's name in a checkpoint
        self._names: dict[tuple[str, str], str] = {}

    def entry(self, place: int) -> Any:
        """Return the entry at a place."""
        return self.dump.data[self.flow.names[place]]

    def outputs(self, place: int) -> list[Record]:
        """Return the records of the outputs of the entry at a place."""
        return tensors_in(self.entry(place), "output")

    def forwards(self) -> Iterator[tuple[int, EntryName, dict[str, Any]]]:
        """Yield (place, name, entry) of the calls that compute something: Cells that hold calls are left out."""
        for place, (name, parts) in enumerate(zip(self.flow.names, self.flow.parts)):
            if parts.direction != FORWARD or name in self.flow.containers:
                continue
            entry = self.dump.data[name]
            if type(entry) is dict and not is_update(parts, entry):
                yield place, parts, entry

    def full_name(self, path: str, key: str) -> str:
        """Return the name of a Cell's parameter in a checkpoint; without a snapshot it is made of the path."""
        if not self._names and self.snapshot is not None:
            for name, item in self.snapshot.parameters.items():
                cell = str(item.get("cell") or "")
                _, _, last = name.rpartition(".")
                self._names.setdefault((cell, last), name)
        known = self._names.get((path, key))
        return known or (f"{path}.{key}" if path else key)

    def name_of(self, parameter: tuple[str, str]) -> str:
        """Return the name in a checkpoint of a parameter of a Cell's entry, or of the model's own."""
        entry, key = parameter
        path = self.flow.parts[self.flow.position[entry]].path
        if key in (self.dump.data[entry].get("model_parameters") or {}):
            path, _, key = key.rpartition(".")
        return self.full_name(path, key)

    @functools.cached_property
    def records(self) -> dict[str, Record]:
        """Parameter -> its record when a recorded call began: the first in the step."""
        found: dict[str, Record] = {}
        for parts, entry in zip(self.flow.parts, self.dump.data.values()):
            if parts.direction != FORWARD or type(entry) is not dict or is_update(parts, entry):
                continue
            for key, record in (entry.get("parameters") or {}).items():
                if is_tensor(record):
                    found.setdefault(self.full_name(parts.path, key), record)
            for name, record in (entry.get("model_parameters") or {}).items():
                if is_tensor(record):
                    path, _, key = name.rpartition(".")
                    found.setdefault(self.full_name(path, key), record)
        return found

    @functools.cached_property
    def uses(self) -> dict[str, list[int]]:
        """Parameter -> the places of the calls that were given it. At level L0 these are the Cells that have it."""
        found: dict[str, list[int]] = {}
        for place, parts, entry in self.forwards():
            for link in self.flow.links[place]:
                if link.parameter is not None:
                    found.setdefault(self.name_of(link.parameter), []).append(place)
            if parts.kind == CELL:
                for key in entry.get("parameters") or {}:
                    found.setdefault(self.full_name(parts.path, key), []).append(place)
        return found

    @functools.cached_property
    def gradients(self) -> dict[str, list[Record]]:
        """Parameter -> the records of its gradients as they arrived."""
        found: dict[str, list[Record]] = {}
        for name, parts in zip(self.flow.names, self.flow.parts):
            if parts.kind != GRADIENT:
                continue
            for key, record in leaves(self.dump.data[name]):
                if is_tensor(record):
                    above, _, last = key.rpartition(".")
                    local = above if last.isdigit() else key
                    parameter = self.full_name(parts.path, local)
                    found.setdefault(parameter, []).append(record)
        return found

    @functools.cached_property
    def entered(self) -> dict[str, list[Any]]:
        """Parameter -> the records of the gradients that entered its updates."""
        return grouped(item for update in self.updates for item in update.entered.items())

    def arrives(self, place: int) -> bool:
        """Return whether a gradient that is not zero arrives at the call at a place."""
        backward = self.flow.backward_of(place)
        entry = None if backward is None else self.entry(backward)
        if type(entry) is not dict:
            return False
        return any(norm(record) for _, record in leaves(entry.get("input")))

    @functools.cached_property
    def losses(self) -> list[int]:
        """The places of the calls with which a backward begins, and whose output is one number."""
        found: dict[int, None] = {}
        was_forward = True
        for place, parts in enumerate(self.flow.parts):
            if was_forward and parts.direction == BACKWARD and parts.kind != GRADIENT:
                forward = self.flow.forward_of(place)
                if forward is not None and self._gives_one_number(forward):
                    found[forward] = None
            was_forward = parts.direction == FORWARD
        return list(found)

    def _gives_one_number(self, place: int) -> bool:
        outputs = self.outputs(place)
        return len(outputs) == 1 and element_count(outputs[0].get("shape")) == 1

    def ancestors(self, place: int) -> Iterator[int]:
        """Yield the Cells around a call, the innermost first."""
        construct = self.dump.construct
        name = self.flow.cells[place]
        seen: set[str] = set()
        while name and name in self.flow.position and name not in seen:
            seen.add(name)
            yield self.flow.position[name]
            name = construct.get(name)

    def found(
        self, weight: str, rule: str, said: Sentence, place: int, name: str = ""
    ) -> HealthFinding:
        """Return a finding at a place, with the Cell and the line of code."""
        call = self.dump[self.flow.names[place]]
        frame = user_frame(call.stack)
        return HealthFinding(
            weight,
            rule,
            said,
            name or call.name,
            self.dump.step,
            call.cell,
            frame.file if frame else None,
            frame.line if frame else None,
            frame.source if frame else None,
            self.dump.rank,
        )
