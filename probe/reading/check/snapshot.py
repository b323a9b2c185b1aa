# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds and reads the snapshots of a run: run.json and run.jsonl of each rank."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.findings.system import reason_of
from probe.reading.dumps.document import Sieve, read_document
from probe.reading.dumps.shapes import DESCRIBED, OPTIMIZER, PARAMETER, RUN, RUN_LINE
from probe.store import file_names
from probe.store.file_names import Rank

#: the value of a place: dtype, shape and checksums of a tensor, or a plain value
Described = dict[str, Any]


@dataclass(frozen=True)
class GradientCall:
    """A call of a function that is differentiated."""

    function: str  # its name
    names: list[str]  # the names of its positional arguments; none where they are not known
    arguments: Described  # place -> the value that entered it

    def name(self, place: str) -> str:
        """Return the name of an argument, by the first part of its place: "1" is "labels"."""
        first, dot, rest = place.partition(".")
        is_known = first.isdecimal() and int(first) < len(self.names)
        return f"{self.names[int(first)]}{dot}{rest}" if is_known else place


@dataclass
class RunSnapshot:
    """The snapshot of one rank of one run."""

    path: str
    run: dict[str, Any]  # the content of run.json
    #: the user's own values: dotted name -> value
    notes: dict[str, Any] = field(default_factory=dict)
    #: the first numbers of each optimizer, by the name of its entry, in the order of their updates
    optimizers: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: the same optimizers -> the steps of these numbers
    first_updates: dict[str, int] = field(default_factory=dict)
    #: step -> place -> the value that entered the model
    inputs: dict[int, Described] = field(default_factory=dict)
    #: step -> the calls of functions that were differentiated, in their order
    gradient_calls: dict[int, list[GradientCall]] = field(default_factory=dict)
    #: step -> the Cells that were not in training mode when the model began, where they are others than before
    modes: dict[int, list[str]] = field(default_factory=dict)
    #: step -> parameter -> its CRC-32 after the updates of the step
    updates: dict[int, dict[str, Any]] = field(default_factory=dict)
    #: parameters of optimizers that did not update them in the first step
    idle: list[str] = field(default_factory=list)
    #: parameters of Cells that steps call, and that no model given to start() holds -> the classes of these Cells
    outside: dict[str, str] = field(default_factory=dict)
    other_model: int | None = None  # the first step in which start() was given another model
    damage: Sentence = NOTHING  # a remark about lines that cannot be read, if there are such

    rank = property(
        lambda self: self.run.get("rank"), doc="The rank, None where there is one process only."
    )

    def part(self, key: str) -> dict[str, Any]:
        """Return an object in run.json, such as "environment"; {} where there is none."""
        return mapping(self.run.get(key))

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The parameters by name: dtype, shape, checksums, Cell, trainable."""
        return {
            name: {
                **item["values"],
                "cell": item.get("cell"),
                "trainable": item.get("trainable"),
            }
            for name, item in self.run["parameters"].items()
        }

    @property
    def untold(self) -> dict[str, str]:
        """The parameters outside of the models that no optimizer holds, with the classes of their Cells."""
        held: set[str] = set()
        for numbers in self.optimizers.values():
            held.update(numbers.get("parameters") or ())
        return {name: kind for name, kind in self.outside.items() if name not in held}

    def evaluating(self, step: int) -> list[str]:
        """Return the Cells that were not in training mode in a step."""
        known = [before for before in self.modes if before <= step]
        return self.modes[max(known)] if known else []

    @property
    def cells(self) -> dict[str, str]:
        """The Cells: path -> class."""
        kinds = {}
        for item in self.run.get("cells") or ():
            if isinstance(item, list) and len(item) == 2:
                path, kind = item
                kinds[str(path)] = str(kind)
        return kinds

    @property
    def cell_values(self) -> dict[str, dict[str, Any]]:
        """The numbers and texts of the Cells: path -> name -> value."""
        by_path = self.part("cell_values")
        return {path: mapping(values) for path, values in by_path.items()}


def mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def read_snapshots(path: str | os.PathLike[str]) -> list[RunSnapshot]:
    """Return a run's snapshots by rank, of a folder of it or a run.json; raise UsageError for none or broken ones."""
    path = os.fspath(path)
    files = _files(path)
    if files == [path]:
        return [_read(path)]
    found: dict[int | None, RunSnapshot] = {}
    for file in files:
        snapshot = _read(file)
        before = found.get(snapshot.rank)
        if before is None or _first_step(snapshot) < _first_step(before):
            found[snapshot.rank] = snapshot
    ranks = sorted(found, key=lambda rank: -1 if rank is None else rank)
    asked_for = os.path.basename(os.path.abspath(path))
    wanted = [rank for rank in ranks if file_names.rank_name(rank) == asked_for]
    return [found[rank] for rank in wanted or ranks]


def _files(path: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    if not os.path.isdir(path):
        raise UsageError(say("error.no_folder", path=path))
    whole = os.path.abspath(path)
    roots = [path]
    name = os.path.basename(whole)
    is_part = name == file_names.rank_name(None) or file_names.rank_of(name) is not None
    if is_part or file_names.step_of(name) is not None:  # the snapshot may lie above
        above = os.path.dirname(whole)
        roots += [above, os.path.dirname(above)]
    for root in roots:
        if files := _find(root):
            return files
    raise UsageError(say("check.no_run_in", path=path, file=file_names.RUN))


class Snapshots:
    """The snapshots of a run, read one at a time when they are asked for: a thousand ranks have large ones."""

    def __init__(self, path: str) -> None:
        self._files: dict[str, str] = {}
        try:
            files = sorted(_files(path), key=_step_of_file)
        except UsageError:
            return  # nothing is known then
        for file in files:
            self._files.setdefault(os.path.basename(os.path.dirname(file)), file)

    def of_rank(self, rank: Rank) -> RunSnapshot | None:
        """Return the snapshot of a rank; None where it has none, or one that cannot be read."""
        only = next(iter(self._files.values())) if len(self._files) == 1 else ""
        folder = rank if isinstance(rank, str) else file_names.rank_name(rank)
        file = self._files.get(folder, only)
        try:
            return _read(file) if file else None
        except UsageError:
            return None


def _step_of_file(path: str) -> int:
    """Return the step of a run.json in step0/rank0; 0 where its place has none."""
    grandparent = path.split(os.sep)[-3:][0]
    return file_names.step_of(grandparent) or 0


def _first_step(snapshot: RunSnapshot) -> int:
    return snapshot.run.get("first_step") or 0


def _find(root: str) -> list[str]:
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != file_names.ARRAYS)
        if file_names.RUN in files:
            found.append(os.path.join(folder, file_names.RUN))
    return found


def _read(path: str) -> RunSnapshot:
    sieve = Sieve(path)
    run = sieve.header(read_document(path), RUN)
    if run.get("parameters") is None:
        raise UsageError(say("check.no_run", path=path, file=file_names.RUN))
    parameters = sieve.objects(run["parameters"], PARAMETER)
    values = {name: item.get("values") or {} for name, item in parameters.items()}
    described = sieve.objects(values, DESCRIBED)
    run["parameters"] = {
        name: {**item, "values": described.get(name)} for name, item in parameters.items()
    }
    snapshot = RunSnapshot(path, run)
    lines = os.path.join(os.path.dirname(path), file_names.RUN_LINES)
    sieve_of_lines = Sieve(lines)
    cut = NOTHING
    try:
        with open_text(lines, "replace") as file:
            is_whole = [_take(snapshot, line, sieve_of_lines) for line in file]
        if not all(is_whole):
            cut = say("check.line_cut", path=lines)
    except OSError as error:
        cut = say("dump.unreadable", path=lines, error=reason_of(error))
    snapshot.damage = clauses(cut, *sieve.told(), *sieve_of_lines.told())
    return snapshot


def _take(snapshot: RunSnapshot, text: str, sieve: Sieve) -> bool:
    """Add a line to a snapshot; return False for a cut one, which a process leaves that was killed."""
    try:
        _add(snapshot, json.loads(text), sieve)
    except (ValueError, RecursionError):
        return False
    return True


def _add(snapshot: RunSnapshot, line: Any, sieve: Sieve) -> None:
    if not isinstance(line, dict):
        raise ValueError("no object")
    line = sieve.header(line, RUN_LINE)
    step = line.get("step")
    if line.get("note"):
        snapshot.notes.update(flat(line["note"]))
    if step is not None and line.get("inputs") is not None:
        snapshot.inputs[step] = _inputs(line["inputs"], sieve)
        if line.get("evaluating") is not None:
            snapshot.modes[step] = line["evaluating"]
    elif step is not None and line.get("arguments") is not None:
        found = _inputs(line["arguments"], sieve)
        call = GradientCall(line.get("function") or "", line.get("names") or [], found)
        snapshot.gradient_calls.setdefault(step, []).append(call)
    elif line.get("idle") is not None:
        snapshot.idle = line["idle"]
    elif line.get("outside") is not None:
        snapshot.outside.update(dict.fromkeys(line.get("parameters") or (), line["outside"]))
    elif step is not None and line.get("model") is not None and snapshot.other_model is None:
        snapshot.other_model = step
    elif step is not None and line.get("updated"):
        snapshot.updates.setdefault(step, {}).update(line.get("crc") or {})
    elif line.get("optimizer"):
        name = line["optimizer"]
        snapshot.optimizers[name] = sieve.header(line.get("numbers") or {}, OPTIMIZER)
        if step is not None:
            snapshot.first_updates[name] = step


def _inputs(nested: Any, sieve: Sieve) -> Described:
    """Return the inputs of a step by their places."""
    values = flat(nested, is_leaf=is_described)
    tensors = {place: value for place, value in values.items() if is_described(value)}
    return {**values, **sieve.objects(tensors, DESCRIBED)}


def flat(
    value: Any, place: str = "", is_leaf: Callable[[Any], bool] = lambda value: False
) -> dict[str, Any]:
    """Return the leaves of nested objects and lists by their dotted places.

    >>> flat({"a": {"b": 1}, "c": [2, 3]})
    {'a.b': 1, 'c.0': 2, 'c.1': 3}
    """
    if not isinstance(value, (dict, list)) or not value or is_leaf(value):
        return {place: value}
    leaves: dict[str, Any] = {}
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        below = f"{place}.{key}" if place else str(key)
        leaves.update(flat(item, below, is_leaf))
    return leaves


def is_described(value: Any) -> bool:
    """Return whether a value describes a tensor."""
    return isinstance(value, dict) and "dtype" in value and "shape" in value
