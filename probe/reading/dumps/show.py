# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe show``: an overview of the dumps below a folder. One dump at a time is in memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.process.progress import progress
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.run import Run
from probe.reading.dumps.updates import global_norm, groups, is_update, parameter_names
from probe.reading.dumps.values import NUMBERS, has_nonfinite
from probe.store import file_names

_UPDATES = 8


def overview(run: Run, rows: int, width: int, language: str) -> tuple[str, int]:
    """Return the description of every dump of a run, and how many of them are broken.

    Of the first dump, ``rows`` tensors are listed. A line has ``width`` letters at most; 0 cuts nothing.

    Raise UsageError when none can be read.
    """
    lines, first, broken = [text.safe(os.path.abspath(run.path))], "", []
    base = run.path if os.path.isdir(run.path) else os.path.dirname(run.path)
    notes: list[Sentence] = []
    for folder in progress(run.folders, "reading"):
        dump = Dump(folder)
        lines.append(f"  {text.safe(os.path.relpath(folder.path, base))}/")
        try:
            count = say("show.entries", count=len(dump))
            first = first or _content(dump, base, rows, width, language)
            notes += dump.document.notes
        except UsageError as error:
            broken.append(str(error))
            count = say("show.broken")
        lines += (
            f"    {name:<22} {text.size(size):>9}{'  ' * bool(note)}{note.text(language)}"
            for name, size, note in _files(folder, count)
        )
    if len(broken) == len(run.folders):
        raise UsageError("; ".join(broken))
    notes = [*(say("show.broken_because", reason=reason) for reason in broken), *notes]
    parts = ["\n".join(lines), first, "\n".join(text.safe(note.text(language)) for note in notes)]
    return text.fit("\n\n".join(filter(None, parts)), width), len(broken)


def _content(dump: Dump, base: str, rows: int, width: int, language: str) -> str:
    """Return the counts, the updates and the first tensors of a dump."""
    updates = "\n".join(text.safe(said.text(language)) for said in _updates(dump))
    return "\n\n".join(
        filter(None, (_kinds(dump, base, width, language), updates, _numbers(dump, rows, width, language)))
    )


def _files(folder: DumpFolder, count: Sentence) -> Iterator[tuple[str, int, Sentence]]:
    """Yield the name, the size and a remark of each file."""
    names = sorted(os.listdir(folder.path))
    arrays = {name for name in names if name.endswith(".npy")}
    if arrays:  # of kernels
        size = sum(os.lstat(os.path.join(folder.path, name)).st_size for name in arrays)  # also of dangling links
        yield "*.npy", size, say("show.files", count=len(arrays))
    for name in names:
        if name in arrays:
            continue
        full = os.path.join(folder.path, name)
        if name == file_names.ARRAYS and os.path.isdir(full):
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in os.scandir(full)]
            yield f"{name}/", sum(sizes), say("show.files", count=len(sizes))
        elif os.path.isfile(full):
            note = count if name in (file_names.DUMP, file_names.DEBUG) else NOTHING
            if name in (file_names.STACK, file_names.CONSTRUCT):
                note = _damage(full)
            yield text.safe(name), os.path.getsize(full), note


def _damage(path: str) -> Sentence:
    """Return a remark where a document has no end, without reading all of it."""
    try:
        with open_file(path) as file:
            file.seek(max(os.path.getsize(path) - 64, 0))
            return NOTHING if file.read().rstrip().endswith(b"}") else say("show.no_end")
    except OSError as error:
        return say("show.broken_because", reason=str(error.strerror))


def _kinds(dump: Dump, base: str, width: int, language: str) -> str:
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
    header = words(language, "show.kind", "show.forward", "show.backward")
    header += ["parameters_grad", *words(language, "show.tensors"), "NaN/Inf"]
    body = [[text.safe(kind), *(str(column[kind]) for column in counts)] for kind in kinds]
    total = [*words(language, "show.all"), *(str(sum(column.values())) for column in counts)]
    task, level = (str(dump.header.get(key)) for key in ("task", "level"))
    micro = {entry["micro"] for entry in dump.data.values() if type(entry) is dict and type(entry.get("micro")) is str}
    count = say("show.micro_batches" if len(micro) > 1 else "show.micro_batch", count=len(micro)) if micro else NOTHING
    head = say("show.dump", place=os.path.relpath(dump.path, base), task=task, level=level, micro=count)
    return f"{text.safe(head.text(language))}\n{text.columns([header, *body, total], width)}"


def _updates(dump: Dump) -> Iterator[Sentence]:
    """Yield the numbers of each update of an optimizer, and the norm of the gradients that entered it."""
    lines = 0
    for name, entry in dump.data.items():
        if not is_update(entry_name.parse(name), entry):
            continue
        if lines >= _UPDATES:
            yield say("show.further")
            return
        found = groups(entry)
        common = dict(set.intersection(*(set(numbers.items()) for numbers, _ in found)))
        shown = _shown({key: value for key, value in found[0][0].items() if key in common})
        count, norm = len(parameter_names(entry)), text.number(global_norm(entry))
        yield say("show.update", name=name, count=count, norm=norm, numbers=shown)
        groups_shown = found if len(found) > 1 else []
        for number, (numbers, names) in enumerate(groups_shown, 1):
            own = _shown({key: value for key, value in numbers.items() if key not in common})
            yield say("show.group", number=number, count=len(names), numbers=own)
        lines += 1 + len(groups_shown)


def _shown(numbers: dict[str, float]) -> Sentence:
    shown = [f"{key} {text.number(value)}" for key, value in numbers.items()]
    return say("show.numbers", numbers=shown) if shown else NOTHING


def words(language: str, *keys: str) -> list[str]:
    """Return the words of a header."""
    return [say(key).text(language) for key in keys]


def _numbers(dump: Dump, rows: int, width: int, language: str) -> str:
    body: list[list[str]] = []
    count = 0
    for place, record in dump.tensors():
        count += 1
        if len(body) < rows:
            numbers = [text.number(record.get(key)) for key in NUMBERS]
            body.append([text.safe(place), text.safe(record.get("dtype")), text.shape(record.get("shape")), *numbers])
    header = [*words(language, "show.tensor", "show.dtype", "show.shape"), *NUMBERS]
    more = [say("show.more", count=count - len(body)).text(language)] if count > len(body) else []
    return "\n".join([text.columns([header, *body], width), *more])
