# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of one step of one rank that is compared with other ranks."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence
from probe.reading.check.snapshot import RunSnapshot, Snapshots
from probe.reading.dumps.call_kinds import is_collective
from probe.reading.dumps.dump import Dump, look_into_dump
from probe.reading.dumps.entry_name import BACKWARD, CELL, GRADIENT, EntryName, parse
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.updates import gradients, is_update, parameter_names
from probe.reading.dumps.values import Record, is_tensor, leaves, real, tensors_in
from probe.series.replicas import Held
from probe.store.file_names import Rank

WORLD = "world"
#: the beginnings of the names of statistics that a BatchNorm of each rank moves by itself
_STATISTICS = ("moving_", "running_")
_REDUCE = ("allreduce", "reducescatter", "distributedgradreducer")
_GATHER = ("allgather",)
_WORLD_GROUP = "world_group"  # how MindSpore's names of the group of all ranks end
_SPLIT_DIMENSIONS = 2  # a collective of the forward splits the model, if its tensor has so many: statistics have one


class RankCollective(NamedTuple):
    """A collective of one rank."""

    members: str  # the ranks of its group, as "0,1"; "world", or the name of the group where they are not known
    key: str  # the API
    name: str  # the entry
    contents: Hashable  # keys of its outputs; None where they are not known


class Batch(NamedTuple):
    """The first tensor that a call was given from outside."""

    content: Hashable
    name: str  # the call
    is_received: bool  # whether a collective brought it


@dataclass
class Digest:
    """The part of one step of one rank that is compared with other ranks."""

    step: int | None
    rank: Rank
    error: Sentence = NOTHING  # the reason why the dump could not be read
    lost: Sentence = NOTHING  # the part that could not be read
    parameters: dict[str, Held] = field(
        default_factory=dict
    )  # parameter, or state of an optimizer -> its record
    statistics: dict[str, Hashable] = field(
        default_factory=dict
    )  # moving statistic -> a key of its content
    after: dict[str, Hashable] = field(
        default_factory=dict
    )  # parameter -> a key of its content after the updates
    collectives: list[RankCollective] = field(default_factory=list)
    batch: Batch | None = None
    #: the Cells that were not in training mode; None where it is not known
    evaluating: tuple[str, ...] | None = None
    splits: bool = False  # whether a collective of the forward is given an activation
    calls: bytes = b""  # the names of all calls, packed: equal bytes mean the same sequence
    norms: bytes = b""  # for each of these calls the norm of its first output as a float32, NaN where it has none

    def call_names(self) -> list[str]:
        """Return the names of all calls, in order."""
        return (
            zlib.decompress(self.calls).decode("utf-8", "surrogatepass").split("\n")
            if self.calls
            else []
        )


def digest(folder: DumpFolder, snapshots: Snapshots | None = None) -> Digest:
    """Return the part of a dump that is compared with other ranks."""
    snapshot = snapshots.of_rank(folder.rank) if snapshots else None
    return look_into_dump(
        folder,
        lambda dump: digest_of(dump, snapshot),
        lambda reason: Digest(folder.step, folder.rank, reason),
    )


def digest_of(dump: Dump, snapshot: RunSnapshot | None = None) -> Digest:
    """Return the part of a dump that is compared with other ranks; raise UsageError when it cannot be read."""
    return _Maker(dump, snapshot).digest()


def _key(record: Record) -> Hashable:
    """Return a key of the content of a tensor; NaN is equal to NaN in it."""
    found = content_key(record)
    return None if found is None else tuple(map(_comparable, found))


def _comparable(item: Any) -> Any:
    return "NaN" if isinstance(item, float) and math.isnan(item) else item


def _shape(record: Record) -> Hashable:
    shape = record.get("shape")
    return (
        tuple(shape) if type(shape) is list and all(type(size) is int for size in shape) else None
    )


def _place(record: Record) -> Hashable:
    """Return which part of a distributed tensor a rank holds; None where its placements are not told."""
    layout = record.get("layout")
    placements = layout.get("placements") if type(layout) is dict else None
    coordinate = layout.get("coordinate") if type(layout) is dict else None
    if (
        type(placements) is not list
        or type(coordinate) is not list
        or len(placements) != len(coordinate)
    ):
        return None
    pairs = zip(placements, coordinate)
    return tuple((str(placement), index) for placement, index in pairs if placement != "Replicate")


class _Maker:
    """Goes through the entries of a dump once."""

    def __init__(self, dump: Dump, snapshot: RunSnapshot | None) -> None:
        self._dump = dump
        self._snapshot = snapshot
        self._made = Digest(dump.step, dump.rank, lost=dump.document.lost)
        self._containers = {parent for parent in dump.construct.values() if parent}
        self._names: dict[tuple[str, str], str] = {}  # (Cell, key) -> name in a checkpoint
        for name, item in snapshot.parameters.items() if snapshot else ():
            self._names.setdefault((str(item.get("cell") or ""), name.rpartition(".")[2]), name)
        self._records: dict[str, Record] = {}  # parameter -> its record
        self._states: dict[str, tuple[str, Record]] = {}  # state -> its parameter and its record
        self._entered: dict[
            str, list[Hashable]
        ] = {}  # parameter -> keys of its gradients that enter updates
        self._arrived: dict[Hashable, set[str]] = {}  # content of a gradient -> the parameters
        self._given: dict[
            Hashable, tuple[str, Record]
        ] = {}  # likewise -> the input that it is the gradient of
        self._reduced: dict[Hashable, str] = {}  # content that a collective reduces -> the group
        self._gathered: set[Hashable] = set()
        self._received: set[Hashable] = set()
        self._batches: list[Batch] = []

    def digest(self) -> Digest:
        """Return the digest."""
        made = self._made
        names = list[str]()
        norms = array("f")
        has_backward = False
        for name, entry in self._dump.data.items():
            if not isinstance(entry, dict):
                continue
            parts = parse(name)
            has_backward = has_backward or parts.direction == BACKWARD
            outputs = tensors_in(entry, "output")
            if parts.kind == GRADIENT:
                self._take_gradients(parts, entry)
            elif is_update(parts, entry):
                self._take_update(parts, entry)
            else:
                self._take_parameters(parts, entry)
                self._take_call(name, parts, entry, outputs, has_backward)
            if parts.kind != GRADIENT:
                names.append(name)
                norms.append((real(outputs[0].get("Norm")) if outputs else None) or math.nan)
        made.calls = zlib.compress("\n".join(names).encode("utf-8", "surrogatepass"))
        made.norms = norms.tobytes()
        made.splits = (
            made.splits and has_backward
        )  # without a backward it may be a reduction of gradients
        self._add_checksums()
        self._add_parameters()
        values = {item.value for item in made.parameters.values()}
        made.batch = next((batch for batch in self._batches if batch.content not in values), None)
        return made

    def _take_gradients(self, parts: EntryName, entry: dict[str, Any]) -> None:
        for place, record in leaves(entry):
            if is_tensor(record):
                key = place.rpartition(".")[0] if place.rpartition(".")[2].isdigit() else place
                self._arrived.setdefault(_key(record), set()).add(self._full_name(parts.path, key))

    def _take_update(self, parts: EntryName, entry: dict[str, Any]) -> None:
        names = parameter_names(entry)
        for name, record in zip(names, gradients(entry)):
            if is_tensor(record) and not is_constant(record):
                self._entered.setdefault(name, []).append(_key(record))
                self._arrived.setdefault(_key(record), set()).add(name)
            else:
                self._entered.setdefault(name, [])
        for key, record in leaves(entry.get("parameters")):
            owner = next((name for name in names if key.endswith(f".{name}")), "")
            if is_tensor(record):
                self._states.setdefault(f"{parts.path}.{key}", (owner, record))

    def _take_parameters(self, parts: EntryName, entry: dict[str, Any]) -> None:
        for key, record in leaves(entry.get("parameters")):
            if not is_tensor(record):
                continue
            name = self._full_name(parts.path, key)
            if key.startswith(_STATISTICS):
                self._made.statistics.setdefault(name, _key(record))
            else:
                self._records.setdefault(name, record)

    def _take_call(
        self,
        name: str,
        parts: EntryName,
        entry: dict[str, Any],
        outputs: list[Record],
        has_backward: bool,
    ) -> None:
        if parts.direction == BACKWARD:
            self._take_backward(parts, entry)
            return
        given = tensors_in(entry, "input_args")
        api = parts.api.lower().replace("_", "")
        if is_collective(parts) and name not in self._containers:
            self._take_collective(name, parts, entry, outputs, api)
            telling = [
                it
                for it in given
                if len(it.get("shape") or ()) >= _SPLIT_DIMENSIONS and not is_constant(it)
            ]
            self._made.splits = self._made.splits or bool(telling and not has_backward)
        elif given and not is_constant(given[0]) and _key(given[0]) is not None:
            content = _key(given[0])
            self._batches.append(Batch(content, name, content in self._received))
        if is_collective(parts) or api.startswith(_REDUCE):
            members = _members(entry)
            for record in given:
                if not is_constant(record):
                    self._reduced.update({_key(record): members} if api.startswith(_REDUCE) else {})
                    self._gathered.update([_key(record)] if api.startswith(_GATHER) else [])

    def _take_collective(
        self, name: str, parts: EntryName, entry: dict[str, Any], outputs: list[Record], api: str
    ) -> None:
        if api.startswith(
            _GATHER
        ):  # behind the result may stand the arguments, and what a rank gave is its own
            first = entry.get("output")
            outputs = (
                tensors_in({"output": first[:1]}, "output") if type(first) is list else outputs
            )
        contents = None if "pending" in entry else tuple(map(_key, outputs))
        self._made.collectives.append(RankCollective(_members(entry), parts.key, name, contents))
        self._received.update(map(_key, outputs))

    def _take_backward(self, parts: EntryName, entry: dict[str, Any]) -> None:
        """Note the inputs of a call, and the gradients of them: a gradient that is reduced tells of its input."""
        forward = self._dump.data.get(parts.forward)
        if parts.kind == CELL or type(forward) is not dict:
            return
        found = dict(leaves(entry.get("output")))
        for place, record in leaves(forward.get("input_args")):
            gradient = found.get(place) or {}
            if is_tensor(record) and is_tensor(gradient) and _shape(record) == _shape(gradient):
                self._given.setdefault(_key(gradient), (f"{parts.forward}.input.{place}", record))

    def _full_name(self, path: str, key: str) -> str:
        return self._names.get((path, key)) or (f"{path}.{key}" if path else key)

    def _add_checksums(self) -> None:
        snapshot = self._snapshot
        made = self._made
        if snapshot is None or made.step is None:
            return
        made.after = {name: str(crc) for name, crc in snapshot.updates.get(made.step, {}).items()}
        made.evaluating = tuple(snapshot.evaluating(made.step)) if snapshot.cells else None
        if (
            snapshot.run.get("first_step") == made.step
        ):  # as they were before the first forward has moved them
            for name, item in snapshot.parameters.items():
                if name.rpartition(".")[2].startswith(_STATISTICS) and item.get("crc"):
                    made.statistics[name] = str(item["crc"])

    def _add_parameters(self) -> None:
        made = self._made
        snapshot = self._snapshot
        groups: dict[str, str] = {}  # parameter -> the ranks over which its gradient is reduced
        for key, names in self._arrived.items():
            if key in self._reduced:
                groups.update(dict.fromkeys(names, self._reduced[key]))
        for name, record in self._records.items():
            made.parameters[name] = self._held(record, name, groups.get(name, ""))
        if snapshot is not None and snapshot.run.get("first_step") == made.step:
            for name, item in snapshot.parameters.items():
                is_statistic = name.rpartition(".")[2].startswith(_STATISTICS)
                if item.get("crc") and not is_statistic and name not in made.parameters:
                    made.parameters[name] = Held(
                        str(item["crc"]),
                        _shape(item),
                        gradient=self._gradient(name),
                        reduced=groups.get(name, ""),
                        place=_place(item),
                    )
        for name in self._entered:
            if (
                name not in made.parameters
            ):  # the value is not recorded; that after the update may be
                made.parameters[name] = Held(
                    None, gradient=self._gradient(name), reduced=groups.get(name, "")
                )
        for state, (owner, record) in self._states.items():
            made.parameters[state] = self._held(record, owner, "")
        if not any(item.value is not None for item in made.parameters.values()):
            self._add_inputs()

    def _add_inputs(self) -> None:
        """Add inputs of calls whose gradients are reduced: without a model they are known by this alone."""
        for key, group in self._reduced.items():
            name, record = self._given.get(key, ("", {}))
            if name:
                self._made.parameters[name] = self._held(record, "", group)

    def _held(self, record: Record, name: str, group: str) -> Held:
        key = _key(record)
        is_telling = key is not None and not is_constant(record)
        return Held(
            key,
            _shape(record),
            is_telling,
            self._gradient(name),
            group,
            key in self._gathered,
            _place(record),
        )

    def _gradient(self, name: str) -> Hashable:
        keys = self._entered.get(name)
        return tuple(keys) if keys and None not in keys else None


def _members(entry: dict[str, Any]) -> str:
    """Return the group of a collective."""
    ranks = entry.get("group_ranks")
    if isinstance(ranks, list):
        return ",".join(map(str, ranks))
    attributes = entry.get("attributes")
    group = attributes.get("group") if type(attributes) is dict else None
    name = group.get("value") if type(group) is dict else None
    return WORLD if type(name) is not str or name.endswith(_WORLD_GROUP) else name
