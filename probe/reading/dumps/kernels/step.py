# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One step of one rank of a kernel dump: the folders of its graphs, in each layout, read as one dump."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import Sentence, locale_language, say
from probe.findings.system import reason_of
from probe.naming import clean
from probe.process.progress import progress
from probe.reading.dumps.document import Document, Sieve, read_optional
from probe.reading.dumps.kernels.tables import (
    MAPPING,
    RUN,
    STATISTICS,
    ArrayName,
    parse,
    read_mapping,
    read_statistics,
)
from probe.reading.dumps.values import Record
from probe.store.file_names import rank_of, step_of

CONSTANTS = "constants"
ORDER = "execution_order"
_RANK = r"(?s)(?P<folder>.*/rank_(?P<rank>[0-9]{1,18}))"
#: the folders of a dump kernel by kernel; of whole graphs on Ascend; of those configured without msprobe
_LAYOUTS = tuple(
    map(
        re.compile,
        (
            _RANK + r"/[^/]+/(?P<graph>\d{1,18})/(?:(?P<step>\d{1,18})|constants)",
            _RANK + r"/(?P<run>[^/]+)/step_(?P<step>[0-9]{1,18})",
            r"(?s)(?P<folder>.*)/(?P<step>\d{1,18})/(?P<run>\d{14,20})/(?P<rank>\d{1,18})/[^/]+/(?P<graph>\d{1,18})/\d{1,18}",
        ),
    )
)
_OP_NUMBER = re.compile(r"-op\d+$")


class Place(NamedTuple):
    """The place of one folder in a kernel dump."""

    path: str
    rank_folder: str  # the folder of its rank, which holds the execution order too; "" where the layout has none
    rank: int | None
    step: int | None  # its step, or None; of constants None
    run: str  # tells runs of one step apart
    graph: str  # the number of its graph, or ""
    is_constants: bool = False  # whether it holds the constants of its graph


def is_kernel_folder(files: Iterable[str]) -> bool:
    """Return whether a folder with these files holds arrays or statistics of kernels."""
    found = set(files)
    if STATISTICS in found or any(
        name.endswith(".npy") and parse(name) is not None for name in found
    ):
        return True
    return MAPPING in found and any(name.endswith(".npy") for name in found)


def locate(path: str) -> Place:
    """Return the place of a folder, by the folders around it.

    >>> locate("/d/rank_3/Net/0/7")[1:6]
    ('/d/rank_3', 3, 7, '', '0')
    >>> locate("/d/rank_1/20241224103808/step_4")[2:5]
    (1, 4, '20241224103808')
    >>> locate("/d/5/20241224103808/2/ge_default_1/1/0")[2:5]
    (2, 5, '20241224103808')
    """
    whole = os.path.abspath(path)
    found = next(filter(None, (layout.fullmatch(whole) for layout in _LAYOUTS)), None)
    known = found.groupdict() if found else {}
    # those of our own tree, around MindSpore's, win: MindSpore calls every rank on CPU 0
    rank, step = (int(known[key]) if known.get(key) else None for key in ("rank", "step"))
    outer = whole.split(os.sep)[-3::-1]
    rank = next((number for part in outer if (number := rank_of(part)) is not None), rank)
    step = next((number for part in outer if (number := step_of(part)) is not None), step)
    return Place(
        path,
        known.get("folder", ""),
        rank,
        step,
        known.get("run", ""),
        known.get("graph", ""),
        os.path.basename(whole) == CONSTANTS,
    )


class _Item(NamedTuple):
    name: ArrayName
    record: Record
    folder: str  # the folder that it is in


class KernelStep:
    """The folders of one step of one rank: by graph those with kernels, and those with the constants of the graph."""

    def __init__(self, places: list[Place], constants: list[Place]) -> None:
        self._places = places
        self._constants = constants

    def read(self, folder: str) -> Document:
        """Read the tables, and measure the arrays that no table has; raise UsageError when nothing can be read."""
        rank_folder = self._places[0].rank_folder
        notes: list[Sentence] = []
        run = _run(rank_folder, notes)
        items = [item for place in self._places for item in _items(place.path, run, notes)]
        constants = [item for place in self._constants for item in _items(place.path, {}, notes)]
        if not items and notes:
            raise UsageError("; ".join(map(str, notes)))
        scopes = _scopes(rank_folder) if rank_folder else {}
        cells = run.get("cells")
        paths = CellPaths(cells if isinstance(cells, dict) else {})
        entries = _Entries(scopes, paths)
        entries.add_values("Constant", constants)
        entries.add_kernels(item for item in items if not item.name.is_parameter)
        entries.add_values("Parameter", (item for item in items if item.name.is_parameter))
        header = {
            "task": "tensor" if entries.files else "statistics",
            "level": "L2",
            "framework": "mindspore",
        }
        header.update({key: run[key] for key in ("task", "run") if key in run})
        construct = paths.construct(entries.parents)
        return Document(header, entries.data, dict, lambda: construct, notes, entries.files.get)


def steps_of(folders: Iterable[str]) -> Iterator[tuple[Place, KernelStep]]:
    """Group folders with kernels into steps; yield the first folder of each with its source."""
    groups: dict[tuple[Any, ...], list[Place]] = {}
    constants: dict[tuple[str, str], list[Place]] = {}
    for place in map(locate, sorted(folders)):
        if place.is_constants:
            constants.setdefault((place.rank_folder, place.graph), []).append(place)
        else:
            alone = place.path if place.step is None else ""
            groups.setdefault(
                (place.rank_folder, place.run, place.rank, place.step, alone), []
            ).append(place)
    for places in groups.values():
        own = [
            found
            for place in places
            for found in constants.get((place.rank_folder, place.graph), ())
        ]
        yield places[0], KernelStep(places, own)


def unmeasured(path: str) -> Iterator[tuple[str, int]]:
    """Yield the folders below a path in which a run of task statistics has left arrays, and how many."""
    for folder, _, files in sorted(os.walk(path)):
        arrays = [file for file in files if file.endswith(".npy")]
        place = locate(folder)
        if arrays and place.rank_folder and not place.is_constants and is_kernel_folder(files):
            run = _run(place.rank_folder, [])
            if run.get("task") == "statistics" and not run.get("keep_arrays"):
                yield folder, len(arrays)


def _items(folder: str, run: dict[str, Any], notes: list[Sentence]) -> Iterator[_Item]:
    """Yield the tensors of a folder: those of statistic.csv, then those that only have an array."""
    from probe.reading.dumps.load import record_of  # imports numpy

    originals = read_mapping(folder, notes)
    arrays: dict[tuple[Any, ...], tuple[str, ArrayName]] = {}
    for file in sorted(os.listdir(folder)):
        name = parse(originals.get(file, file)) if file.endswith(".npy") else None
        if name is not None:
            arrays[name.key] = file, name
        elif file.endswith(".npy"):
            notes.append(say("dump.foreign_name", path=os.path.join(folder, file), mapping=MAPPING))
    for name, record in read_statistics(folder, notes):
        found = arrays.pop(name.key, None)
        yield _Item(name, {**record, "data_name": found[0]} if found else record, folder)
    if arrays and run.get("task") == "statistics" and not run.get("keep_arrays"):
        notes.append(say("dump.unmeasured", folder=folder, count=len(arrays)))
    label = say("progress.measuring").text(locale_language())  # a dump does not know who reads it
    for file, name in progress(arrays.values(), label):
        try:
            yield _Item(
                name,
                {**record_of(os.path.join(folder, file), name.dtype), "data_name": file},
                folder,
            )
        except (OSError, ValueError, MemoryError) as error:  # noqa: PERF203 - one broken item does not hide the others
            notes.append(
                say("dump.unreadable", path=os.path.join(folder, file), error=reason_of(error))
            )


def _run(rank_folder: str, notes: list[Sentence]) -> dict[str, Any]:
    """Return the settings of a run; {} where there are none, and a remark if they cannot be read."""
    try:
        found = read_optional(rank_folder, RUN) if rank_folder else {}
    except UsageError as error:
        notes.append(say("door.unread", reason=reason_of(error)))
        return {}
    sieve = Sieve(os.path.join(rank_folder, RUN))
    found = sieve.header(found)
    notes += sieve.told()
    return found


def _scopes(rank_folder: str) -> dict[str, str]:
    """Return names in files -> full names of kernels in the execution orders; whole ones lack the number."""
    found: dict[str, set[str]] = {}
    folder = os.path.join(rank_folder, ORDER)
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = os.path.join(folder, file)
        if (
            file.startswith("ms_execution_order_graph_")
            and file.endswith(".csv")
            and os.path.isfile(path)
        ):
            with open_text(path, "replace") as lines:
                for line in lines:
                    name = line.strip().rstrip(",")
                    # files may have another op number than the execution order
                    without = _OP_NUMBER.sub("", name)
                    joined = _OP_NUMBER.sub("", name.replace("/", "_"))
                    found.setdefault(name.rpartition("/")[2], set()).add(name)
                    found.setdefault(joined, set()).add(without)
    return {known: names.pop() for known, names in found.items() if len(names) == 1}


class _Entries:
    """The entries of a step, in order of time; ``scopes`` has the full names of kernels by the names in their files."""

    def __init__(self, scopes: dict[str, str], paths: CellPaths) -> None:
        self._scopes = scopes
        self._paths = paths
        self.data: dict[str, Any] = {}
        self.parents: dict[
            str, str | None
        ] = {}  # entry name of a kernel -> the entry of its Cell, or None
        self.files: dict[str, str] = {}  # file name of an array -> its path
        self._counts: dict[str, int] = {}
        self._slots: dict[str, tuple[dict[int, Record], dict[int, Record]]] = {}

    def add_values(self, kind: str, items: Iterable[_Item]) -> None:
        """Add the values of parameters or constants."""
        for item in items:
            self._note_file(item)
            self.data[self._numbered(f"{kind}.{_clean(item)}")] = {"value": [item.record]}

    def add_kernels(self, items: Iterable[_Item]) -> None:
        """Add the inputs and outputs of kernels; a place that comes twice begins the kernel's next run."""
        running: dict[tuple[str, str], str] = {}  # graphs may have kernels of one name
        for item in sorted(
            items, key=lambda item: (item.name.timestamp, item.name.io, item.name.slot)
        ):
            self._note_file(item)
            key = _clean(item)
            side = 0 if item.name.io == "input" else 1
            name = running.get((item.folder, key), "")
            if not name or item.name.slot in self._slots[name][side]:
                name = running[item.folder, key] = self._begin(key, item.name)
            self._slots[name][side][item.name.slot] = item.record
        for name, (inputs, outputs) in self._slots.items():
            self.data[name].update(input_args=_by_slot(inputs), output=_by_slot(outputs))

    def _begin(self, key: str, name: ArrayName) -> str:
        number = self._counts[key] = self._counts.get(key, -1) + 1
        entry = f"Kernel.{key}.{number}.forward"
        op = _OP_NUMBER.search(name.op_name)
        joined = self._scopes.get(_OP_NUMBER.sub("", name.op_name))
        scope = self._scopes.get(name.op_name) or (
            joined + (op[0] if op else "") if joined else name.op_name
        )
        self.data[entry] = {"op_type": name.op_type, "scope": scope}
        self.parents[entry] = self._paths.entry(scope)
        self._slots[entry] = {}, {}
        return entry

    def _numbered(self, name: str) -> str:
        found = name
        number = 0
        while found in self.data:
            number += 1
            found = f"{name}.{number}"
        return found

    def _note_file(self, item: _Item) -> None:
        file = item.record.get("data_name")
        if file:
            self.files[file] = os.path.join(item.folder, file)


def _clean(item: _Item) -> str:
    return clean(item.name.op_name).replace("/", "_")


def _by_slot(found: dict[int, Record]) -> list[Record | None]:
    """Return the records by slot; a slot that was not dumped, such as an attribute, is null."""
    return [found.get(slot) for slot in range(max(found) + 1)] if found else []


class CellPaths:
    """The Cells of a model, by the scope names that MindSpore gives their kernels."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        self._classes = dict(
            classes
        )  # path of each Cell below the model -> its class: ``{"features.0": "Conv2d"}``
        self._scopes: list[tuple[str, str]] = []
        self._plain: list[tuple[str, str]] = []
        for path in sorted(classes, key=lambda path: (path.count("."), len(path)), reverse=True):
            names = path.split(".")
            above = [".".join(names[: place + 1]) for place in range(len(names))]
            if all(one in classes for one in above):
                parts = [f"{name}-{classes[one]}" for name, one in zip(names, above)]
                self._scopes.append((f"/{'/'.join(parts)}/", path))
                self._plain.append((f"/{'/'.join(names)}/", path))

    def entry(self, scope: str) -> str | None:
        """Return the entry name of the Cell in which a kernel runs; None where the scope names none of the model.

        The scope stands before the kernel's name, separated by "/"; whole graphs on Ascend separate by "_".

        >>> cells = CellPaths({"features": "SequentialCell", "features.0": "Conv2d"})
        >>> cells.entry("Default/network-Net/features-SequentialCell/0-Conv2d/Conv2D-op3")
        'Cell.features.0.Conv2d.forward.0'
        >>> cells.entry("Default_network-Net_features-SequentialCell_0-Conv2d_Conv2D-op3")
        'Cell.features.0.Conv2d.forward.0'
        >>> cells.entry("Default/Add-op1") is None
        True
        """
        above, separator, _ = scope.rpartition("/")
        text = f"/{above}/" if separator else f"_{scope}"
        joined = [(part.replace("/", "_"), path) for part, path in self._scopes]
        # scopes have no classes where reserve_class_name_in_scope is off
        known = [*self._scopes, *self._plain] if separator else joined
        return next((self.name(path) for part, path in known if part in text), None)

    def name(self, path: str) -> str:
        """Return the entry name of the Cell at a path."""
        return f"Cell.{path}.{self._classes[path]}.forward.0"

    def construct(self, entries: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the parents of entries and of the Cells that they name, up to the outermost Cell."""
        found: dict[str, str | None] = dict(entries)
        for path in self._classes:
            above = path.rpartition(".")[0]
            found[self.name(path)] = self.name(above) if above in self._classes else None
        return found
