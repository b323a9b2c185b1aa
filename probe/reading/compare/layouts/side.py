# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One side of a comparison of two layouts: the ranks that make one whole.

They are read one after the other, entry by entry, so that they take no memory. Values have their places.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.reading.compare.layouts.shards import ALONE, Placed, Shards, axis_between, has_placements
from probe.reading.compare.layouts.stages import Stages
from probe.reading.compare.origins.origin import is_collective, is_random
from probe.reading.dumps.document import Document
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT, parse
from probe.reading.dumps.entry_view import WORDS
from probe.reading.dumps.flow import Flow, content_key, is_constant
from probe.reading.dumps.folders import DumpFolder, DumpSource
from probe.reading.dumps.values import MAX_DEPTH, Leaf, is_tensor, leaves, plain
from probe.store import file_names

#: entries begin at lines that are indented by two, as recorders write them
_ENTRY = re.compile(r'^  ("(?:[^"\\\n]|\\.)*"): ', re.MULTILINE)
_DATA = '\n "data": {\n'
_END = "\n }"
#: parts of an entry that a call is given
GIVEN = ("input", "kwargs", "parameters")
#: parameters that the forward changes, on each rank by its own data
MOVING = re.compile(r"(^|\.)moving_(mean|variance)$")


def read_entries(
    folder: DumpFolder,
    notes: list[Sentence] | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> Iterator[tuple[str, Any]]:
    """Yield (name, entry) of wanted entries, None: all; ``notes`` gets remarks. Raise UsageError when it is broken."""
    text = _text(folder)
    start = text.find(_DATA) + len(_DATA) - 1
    end = text.find(_END, start)
    found = list(_ENTRY.finditer(text, start, end)) if start >= len(_DATA) and end > 0 else []
    if not found or found[0].start() != start + 1:
        document = folder.source.read(folder.path)
        if notes is not None:
            notes += document.notes
        yield from document.data.items()
        return
    ends = [match.start() for match in found[1:]]
    for match, stop in zip(found, [*ends, end]):
        try:
            name = json.loads(match[1])
            if wanted is not None and not wanted(name):
                continue
            entry = json.loads(text[match.end() : stop].rstrip().rstrip(","))
        except (ValueError, RecursionError):
            raise UsageError(
                say(
                    "error.unreadable",
                    path=os.path.join(folder.path, file_names.DUMP),
                    reason=match[1],
                )
            ) from None
        yield name, entry


def _text(folder: DumpFolder) -> str:
    """Return the text of dump.json; "" where the dump is read as a whole."""
    if not isinstance(folder.source, DumpSource) or os.path.exists(
        os.path.join(folder.path, file_names.JOURNAL)
    ):
        return ""
    try:
        with open_text(os.path.join(folder.path, file_names.DUMP)) as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def values(entry: Any) -> Iterator[Leaf]:
    """Yield (place, value) of every value in an entry, as rows of a comparison name the places.

    >>> record = {"type": "mindspore.Tensor"}
    >>> [place for place, _ in values({"input_args": [record], "input_kwargs": {}, "output": [None, [record]]})]
    ['input.0', 'output.0', 'output.1.0']
    >>> [place for place, _ in values({"weight": [record]})]
    ['weight.0']
    """
    if is_tensor(entry):
        yield "0", entry
    elif _has_parts(entry):
        for key, part in entry.items():
            if key in WORDS:
                for place, leaf in leaves(part):
                    yield f"{WORDS[key]}.{place}", leaf
    else:
        yield from leaves(entry)


def with_values(entry: Any, other: Mapping[str, Any]) -> Any:
    """Return an entry with other values at some places.

    >>> with_values({"output": [1, 2]}, {"output.1": 5})
    {'output': [1, 5]}
    """
    if is_tensor(entry):
        return other.get("0", entry)
    if _has_parts(entry):
        return {
            key: _with(part, WORDS[key], other) if key in WORDS else part
            for key, part in entry.items()
        }
    return _with(entry, "", other)


def _has_parts(entry: Any) -> bool:
    return type(entry) is dict and any(key in WORDS for key in entry)


def _with(part: Any, above: str, other: Mapping[str, Any], depth: int = MAX_DEPTH) -> Any:
    if above in other:
        return other[above]
    if not depth or (type(part) is dict and type(part.get("type")) is str):
        return part
    start = f"{above}." if above else ""
    if type(part) is list:
        return [_with(item, f"{start}{place}", other, depth - 1) for place, item in enumerate(part)]
    if type(part) is dict:
        return {key: _with(item, f"{start}{key}", other, depth - 1) for key, item in part.items()}
    return part


class Group(NamedTuple):
    """The ranks that make one whole."""

    stages: tuple[
        tuple[DumpFolder, ...], ...
    ]  # for each pipeline stage the folders of its tensor-parallel ranks

    @property
    def tp(self) -> int:
        """The number of ranks that share the tensors of a layer."""
        return len(self.stages[0])

    @property
    def ranks(self) -> list[Any]:
        """All ranks."""
        return [folder.rank for stage in self.stages for folder in stage]


class Place(NamedTuple):
    """A tensor of an entry."""

    name: str
    place: str


class Side:
    """One side; the stages of the first ranks are put together."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.stages = Stages([stage[0].source.read(stage[0].path) for stage in group.stages])
        self.document: Document = self.stages.document()
        self.construct = self.stages.construct()
        self.containers = frozenset(parent for parent in self.construct.values() if parent)
        self.partners: dict[str, str] = {}  # entry name -> the entry of the other side
        self.shards: dict[
            str, dict[str, Shards]
        ] = {}  # entry name -> place -> the records of all ranks
        self.sums: dict[
            Any, Place
        ] = {}  # content of a term of a sum -> the tensor that has the sum
        self.outside: set[Place] = set()  # inputs that no call has made
        self.given_parameters: set[Place] = set()  # inputs that are parameters
        self._plain: dict[str, dict[str, Any]] = {}
        self._uneven: set[str] = set()

    @property
    def data(self) -> dict[str, Any]:
        """The entries of the first ranks."""
        return self.stages.data

    def plan(self, name: str, other: Mapping[str, Any]) -> None:
        """Decide along which axis the parts of each tensor of an entry are put together, by its partner's values."""
        planned: dict[str, Shards] = {}
        rest: dict[str, Any] = {}
        for place, leaf in values(self.data[name]):
            if not is_tensor(leaf):
                rest[place] = leaf
            elif is_tensor(other.get(place)):
                axis = axis_between(leaf.get("shape"), other[place].get("shape"))
                planned[place] = Placed(leaf) if has_placements(leaf) else Shards(leaf, axis)
            elif place not in other and place.count(".") > 1:
                planned[place] = Shards(
                    leaf, ALONE
                )  # of a list that has fewer tensors there: one for each rank
        self.shards[name] = planned
        self._plain[name] = rest

    def find_outside(self, flow: Flow) -> None:
        """Find in the first ranks inputs that are parameters or data: integers from outside, and the first input."""
        for position, (name, links) in enumerate(zip(flow.names, flow.links)):
            if name not in self.partners or flow.parts[position].direction != FORWARD:
                continue
            for link in links:
                if link.producer >= 0:
                    continue
                if link.parameter is not None:
                    if not MOVING.search(link.parameter[1]):
                        self.given_parameters.add(Place(name, link.place))
                elif not self.outside or str(link.record.get("dtype")).startswith(("Int", "UInt")):
                    self.outside.add(Place(name, link.place))

    def plan_sums(self) -> None:
        """Find the collectives that add up, and the tensors that they add up."""
        for name, entry in self.data.items():
            parts = parse(name)
            if parts.direction != FORWARD or not is_collective(parts) or name in self.containers:
                continue
            if "reduce" not in parts.api.lower() or not self.is_own_group(name) or not _adds(entry):
                continue
            found = dict(values(entry))
            given = [
                leaf for place, leaf in found.items() if place.startswith(GIVEN) and is_tensor(leaf)
            ]
            made = next(
                (
                    item
                    for item in found.items()
                    if item[0].startswith("output.") and is_tensor(item[1])
                ),
                None,
            )
            if made is None or not given:
                continue
            term = next(
                (leaf for leaf in given if leaf.get("shape") == made[1].get("shape")), given[-1]
            )
            if parts.api.lower().startswith(("reduce_scatter", "reducescatter")):
                term = next(
                    (leaf for leaf in given if leaf.get("shape") != made[1].get("shape")), term
                )
            axis = axis_between(made[1].get("shape"), term.get("shape"))
            self.shards.setdefault(name, {}).setdefault(made[0], Shards(made[1], axis))
            key = content_key(term)
            if key is not None and not is_constant(term):
                self.sums.setdefault(key, Place(name, made[0]))

    def is_own_group(self, name: str) -> bool:
        """Return whether a collective's group is the tensor-parallel group, or is not known."""
        entry = self.data[name]
        members = entry.get("group_ranks") if isinstance(entry, dict) else None
        if not isinstance(members, list):
            return True
        stage = self.group.stages[self.stages.stage_of[name]]
        return [str(member) for member in members] == [str(folder.rank or 0) for folder in stage]

    def read_others(self) -> list[Sentence]:
        """Read the other ranks, one after the other, and return the remarks on their dumps."""
        notes: list[Sentence] = []
        for number, stage in enumerate(self.group.stages):
            for rank, folder in enumerate(stage[1:], 1):
                self._add(read_entries(folder, notes), number, rank)
        return notes

    def _add(self, entries: Iterable[tuple[str, Any]], stage: int, rank: int) -> None:
        renamed = self.stages.renamings[stage]
        missing = {name for name in self.shards if self.stages.stage_of[name] == stage}
        for own_name, entry in entries:
            name = renamed(own_name)
            planned = self.shards.get(name)
            if planned is None or name not in missing:
                continue
            missing.discard(name)
            found = dict(values(entry))
            for place, shards in planned.items():
                leaf = found.pop(place, None)
                shards.add(leaf if is_tensor(leaf) else None, rank)
            if self._plain.get(name, {}) != {
                place: leaf for place, leaf in found.items() if not is_tensor(leaf)
            }:
                self._uneven.add(name)
        for name in missing:
            self._uneven.add(name)
            for shards in self.shards[name].values():
                shards.add(None, rank)

    def must_agree(self, name: str) -> bool:
        """Return whether all ranks must give the same: each is given the same, and as a whole."""
        parts = parse(name)
        if parts.kind == GRADIENT:
            names = [f"{parts.key}.{BACKWARD}.{number}" for number in range(parts.number + 1)]
            return all(self.must_agree(backward) for backward in names)
        if not self._is_given_the_same(name):
            return False
        if parts.direction == BACKWARD:
            forward = self.shards.get(parts.forward, {})
            agree = all(
                shards.agrees for place, shards in forward.items() if place.startswith("output")
            )
            return bool(forward) and agree and self._is_given_the_same(parts.forward)
        return True

    def _is_given_the_same(self, name: str) -> bool:
        parts = parse(name)
        planned = self.shards.get(name)
        if planned is None or name in self._uneven or name in self.containers:
            return False
        if parts.kind not in (API, CELL) or is_random(parts) or is_collective(parts):
            return False
        tensors = [
            place
            for place, leaf in values(self.data[name])
            if is_tensor(leaf) and place.startswith(GIVEN)
        ]
        return bool(tensors) and all(
            place in planned and planned[place].agrees for place in tensors
        )


def _adds(entry: Any) -> bool:
    """Return whether a collective adds up: its operation is a sum, or the one that it has by default."""
    given = (
        plain(leaf)
        for place, leaf in values(entry)
        if place.startswith(GIVEN) and not is_tensor(leaf)
    )
    return not any(
        isinstance(value, str) and value.lower() in ("max", "min", "prod", "avg", "mean")
        for value in given
    )
