# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""``probe show``: an overview of the dumps below a folder. One dump at a time is in memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from probe.errors import UsageError
from probe.process.progress import progress
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT
from probe.reading.dumps.run import Run, open
from probe.reading.dumps.source import DumpFolder
from probe.reading.dumps.updates import global_norm, groups, is_update, parameter_names
from probe.reading.dumps.values import NUMBERS, has_nonfinite
from probe.store import layout

_ROWS, _UPDATES = 16, 8


def show(path: str, rows: int = _ROWS, width: int = 0) -> str:
    """Return the description of every dump below a path; a broken one is named as broken.

    Args:
        path: a dump_path, a step folder or a rank folder.
        rows: how many tensors of the first dump are listed.
        width: how many letters a line may have; 0 cuts nothing.

    Raises:
        UsageError: when there is no dump, or none can be read.
    """
    return overview(open(path), rows, width)[0]


def overview(run: Run, rows: int = _ROWS, width: int = 0) -> tuple[str, int]:
    """Return the description of a run, and how many of its dumps are broken.

    Raises:
        UsageError: when none can be read.
    """
    lines, first, broken = [text.safe(os.path.abspath(run.path))], "", []
    base = run.path if os.path.isdir(run.path) else os.path.dirname(run.path)
    notes: list[str] = []
    for folder in progress(run.folders, "reading"):
        dump = Dump(folder)
        lines.append(f"  {text.safe(os.path.relpath(folder.path, base))}/")
        try:
            count = f"{len(dump)} entries"
            first = first or "\n\n".join(
                filter(None, (_kinds(dump, base, width), _updates(dump), _numbers(dump, rows, width)))
            )
            notes += dump.notes
        except UsageError as error:
            broken.append(str(error))
            count = "broken"
        lines += _files(folder, count)
    if len(broken) == len(run.folders):
        raise UsageError("; ".join(broken))
    said = [f"broken: {text.safe(reason)}" for reason in broken] + [text.safe(note) for note in notes]
    parts = ["\n".join(lines), first, "\n".join(said)]
    return text.fit("\n\n".join(filter(None, parts)), width), len(broken)


def _files(folder: DumpFolder, count: str) -> Iterator[str]:
    names = sorted(os.listdir(folder.path))
    arrays = {name for name in names if name.endswith(".npy")}
    if arrays:  # of kernels
        size = sum(os.path.getsize(os.path.join(folder.path, name)) for name in arrays)
        yield f"    {'*.npy':<22} {text.size(size):>9}  {len(arrays)} files"
    for name in names:
        if name in arrays:
            continue
        full = os.path.join(folder.path, name)
        if name == layout.ARRAYS and os.path.isdir(full):
            sizes = [entry.stat().st_size for entry in os.scandir(full)]
            yield f"    {name + '/':<22} {text.size(sum(sizes)):>9}  {len(sizes)} files"
        elif os.path.isfile(full):
            note = f"  {count}" if name in (layout.DUMP, layout.DEBUG) else ""
            if name in (layout.STACK, layout.CONSTRUCT):
                note = _damage(full)
            yield f"    {text.safe(name):<22} {text.size(os.path.getsize(full)):>9}{note}"


def _damage(path: str) -> str:
    """Return a remark where a document has no end, without reading all of it."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY), "rb") as file:
            file.seek(max(os.path.getsize(path) - 64, 0))
            return "" if file.read().rstrip().endswith(b"}") else "  broken: it has no end"
    except OSError as error:
        return f"  broken: {error.strerror}"


def _kinds(dump: Dump, base: str, width: int) -> str:
    forward, backward, gradients, tensors, nonfinite = (Counter[str]() for _ in range(5))
    for name in dump.data:
        parts = entry_name.parse(name)
        counter = gradients if parts.kind == GRADIENT else backward if parts.direction == BACKWARD else forward
        counter[parts.prefix] += 1
    for place, record in dump.tensors():
        kind = place.split(".", 1)[0]
        kind = kind if kind in forward or kind in backward or kind in gradients else "debug"
        tensors[kind] += 1
        nonfinite[kind] += has_nonfinite(record)
    kinds = sorted({*forward, *backward, *gradients})
    counts = (forward, backward, gradients, tensors, nonfinite)
    header = ["kind", "forward", "backward", "parameters_grad", "tensors", "NaN/Inf"]
    body = [[text.safe(kind), *(str(column[kind]) for column in counts)] for kind in kinds]
    total = ["all", *(str(sum(column.values())) for column in counts)]
    place = os.path.relpath(dump.path, base)
    task, level = (text.safe(dump.header.get(key)) for key in ("task", "level"))
    micro = {entry["micro"] for entry in dump.data.values() if type(entry) is dict and type(entry.get("micro")) is str}
    count = f", {len(micro)} micro-batch{'es' * (len(micro) > 1)}" if micro else ""
    return f"{text.safe(place)}: task {task}, level {level}{count}\n" + text.columns([header, *body, total], width)


def _updates(dump: Dump) -> str:
    """Return the numbers of each update of an optimizer, and the norm of the gradients that entered it."""
    lines: list[str] = []
    for name, entry in dump.data.items():
        if not is_update(entry_name.parse(name), entry):
            continue
        if len(lines) >= _UPDATES:
            return "\n".join([*lines, "  ..."])
        found = groups(entry)
        common = dict(set.intersection(*(set(numbers.items()) for numbers, _ in found)))
        shown = _shown({key: value for key, value in found[0][0].items() if key in common})
        count = len(parameter_names(entry))
        lines.append(f"{text.safe(name)}: {count} parameters, global norm {text.number(global_norm(entry))}{shown}")
        for number, (numbers, names) in enumerate(found if len(found) > 1 else (), 1):
            own = _shown({key: value for key, value in numbers.items() if key not in common})
            lines.append(f"  group {number}: {len(names)} parameters{own}")
    return "\n".join(lines)


def _shown(numbers: dict[str, float]) -> str:
    return "".join(f", {text.safe(key)} {text.number(value)}" for key, value in numbers.items())


def _numbers(dump: Dump, rows: int, width: int) -> str:
    body: list[list[str]] = []
    count = 0
    for place, record in dump.tensors():
        count += 1
        if len(body) < rows:
            numbers = [text.number(record.get(key)) for key in NUMBERS]
            body.append([text.safe(place), text.safe(record.get("dtype")), text.shape(record.get("shape")), *numbers])
    more = f"\n  ... and {count - len(body)} more" if count > len(body) else ""
    return text.columns([["tensor", "dtype", "shape", *NUMBERS], *body], width) + more
