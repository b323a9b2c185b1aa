# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe show``: an overview of the dumps below a folder, or the tensors that fit a question, as text, csv or JSON.

One dump at a time is in memory.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import ENGLISH, NOTHING, Sentence, said_of, say
from probe.findings.system import reason_of
from probe.process.progress import progress
from probe.reading.dumps import entry_name, text
from probe.reading.dumps.dump import Call, Dump, Tensor
from probe.reading.dumps.entry_name import BACKWARD, GRADIENT
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.names import ALL_NAMES, Names
from probe.reading.dumps.run import Run, missing
from probe.reading.dumps.tables import write_csv
from probe.reading.dumps.updates import global_norm, groups, is_update, parameter_names, unread
from probe.reading.dumps.values import NUMBERS, SHOWN, further, has_nonfinite, real
from probe.store import file_names

_UPDATES = 8
_KEYS = {key.lower(): key for key in SHOWN}
COLUMNS = ("step", "rank", "cell", "tensor", "dtype", "shape", *SHOWN, "raised", "line")
_PLACES = ("show.step", "show.rank")
#: how many rows are shown where nothing is said: on a terminal, and of a sorted list
ROWS = 40


def overview(run: Run, rows: int, width: int, language: str) -> tuple[str, int]:
    """Return the description of every dump of a run, and how many of them are broken.

    Of the first dump, ``rows`` tensors are listed. A line has ``width`` letters at most; 0 cuts nothing. Raise
    UsageError when none can be read.
    """
    lines = [text.safe(os.path.abspath(run.path))]
    first = ""
    broken: list[Sentence | str] = []
    base = run.path if os.path.isdir(run.path) else os.path.dirname(run.path)
    notes: list[Sentence] = []
    for folder in progress(run.folders, say("progress.reading").text(language)):
        dump = Dump(folder)
        lines.append(f"  {text.safe(os.path.relpath(folder.path, base))}/")
        try:
            count = say("show.entries", count=len(dump))
            first = first or _content(dump, base, rows, width, language)
            notes += dump.document.notes
        except UsageError as error:
            broken.append(said_of(error))
            count = say("show.broken")
        lines += (
            f"    {name:<22} {text.size(size):>9}{'  ' * bool(note)}{note.text(language)}"
            for name, size, note in _files(folder, count)
        )
    if len(broken) == len(run.folders):
        raise UsageError(say("clauses", parts=broken))
    notes = [*(say("show.broken_because", reason=reason) for reason in broken), *notes]
    parts = ["\n".join(lines), first, "\n".join(text.safe(note.text(language)) for note in notes)]
    return text.fit("\n\n".join(filter(None, parts)), width), len(broken)


def _content(dump: Dump, base: str, rows: int, width: int, language: str) -> str:
    updates = "\n".join(text.safe(said.text(language)) for said in _updates(dump))
    return "\n\n".join(
        filter(
            None,
            (_kinds(dump, base, width, language), updates, _numbers(dump, rows, width, language)),
        )
    )


def _files(folder: DumpFolder, count: Sentence) -> Iterator[tuple[str, int, Sentence]]:
    names = sorted(os.listdir(folder.path))
    arrays = {name for name in names if name.endswith(".npy")}
    if arrays:  # of kernels
        size = sum(
            os.lstat(os.path.join(folder.path, name)).st_size for name in arrays
        )  # also of dangling links
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
        return say("show.broken_because", reason=reason_of(error))


def _kinds(dump: Dump, base: str, width: int, language: str) -> str:
    forward, backward, gradients, tensors, nonfinite = (Counter[str]() for _ in range(5))
    for name in dump.data:
        parts = entry_name.parse(name)
        counter = (
            gradients
            if parts.kind == GRADIENT
            else backward
            if parts.direction == BACKWARD
            else forward
        )
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
    micro = {
        entry["micro"]
        for entry in dump.data.values()
        if type(entry) is dict and type(entry.get("micro")) is str
    }
    count = (
        say("show.micro_batches" if len(micro) > 1 else "show.micro_batch", count=len(micro))
        if micro
        else NOTHING
    )
    head = say(
        "show.dump", place=os.path.relpath(dump.path, base), task=task, level=level, micro=count
    )
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
        count = len(parameter_names(entry))
        norm = text.number(global_norm(entry))
        yield say("show.update", name=name, count=count, norm=norm, numbers=shown)
        groups_shown = found if len(found) > 1 else []
        for number, (numbers, names) in enumerate(groups_shown, 1):
            own = _shown({key: value for key, value in numbers.items() if key not in common})
            yield say("show.group", number=number, count=len(names), numbers=own)
        unknown = list(_unread(name, entry))
        yield from unknown
        lines += 1 + len(groups_shown) + len(unknown)


def _unread(name: str, entry: Any) -> Iterator[Sentence]:
    """Yield why numbers of an update could not be read."""
    for number, group, reason in unread(entry):
        if group:
            yield say("show.unread_in_group", entry=name, name=number, number=group, reason=reason)
        else:
            yield say("show.unread", entry=name, name=number, reason=reason)


def _shown(numbers: dict[str, float]) -> Sentence:
    shown = [f"{key} {text.number(value)}" for key, value in numbers.items()]
    return say("show.numbers", numbers=shown) if shown else NOTHING


def words(language: str, *keys: str) -> list[str]:
    """Return the words of a header."""
    return [say(key).text(language) for key in keys]


def _numbers(dump: Dump, rows: int, width: int, language: str) -> str:
    tensors = dump.tensors()
    found = list(itertools.islice(tensors, rows))
    count = len(found) + sum(1 for _ in tensors)
    keys = [*NUMBERS, *_further(record for _, record in found)]
    body = [
        [text.safe(place), text.safe(record.get("dtype")), text.shape(record.get("shape"))]
        + [text.number(record.get(key)) for key in keys]
        for place, record in found
    ]
    header = [*words(language, "show.tensor", "show.dtype", "show.shape"), *map(text.safe, keys)]
    more = [say("show.more", count=count - len(body)).text(language)] if count > len(body) else []
    return "\n".join([text.columns([header, *body], width), *more])


@dataclasses.dataclass(frozen=True)
class Query:
    """Which tensors are asked for."""

    names: Names = ALL_NAMES
    steps: str = ""  # the steps, as "0,4-6"; "" for all
    ranks: str = ""  # the ranks, likewise
    nonfinite: bool = False  # only tensors that hold NaN or Inf
    raised: bool = False  # only calls that raised
    #: "max", "min", "mean", "norm", "nan_count" or "inf_count": the greatest first; "" keeps the file's order
    sort: str = ""
    rows: int = 0  # at most so many; 0 for all
    stack: bool = False  # with the frames of each call

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked: all of the run is meant."""
        return self == Query(rows=self.rows)


def numbers(given: str, name: str) -> frozenset[int]:
    """Return the numbers that a text like "0,4-6" means; raise UsageError when it means none.

    >>> sorted(numbers("0,4-6", "--step"))
    [0, 4, 5, 6]
    """
    found: set[int] = set()
    for part in filter(None, given.replace(" ", "").split(",")):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if match is None or int(match[2] or match[1]) - int(match[1]) not in range(1_000_000):
            raise UsageError(say("error.numbers", option=name, text=given))
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def folders(run: Run, steps: str, ranks: str) -> list[DumpFolder]:
    """Return the folders of these steps and ranks; raise UsageError when there is none."""
    wanted_steps = numbers(steps, "--step")
    wanted_ranks = numbers(ranks, "--rank")
    chosen = [
        folder
        for folder in run.folders
        if (not wanted_steps or folder.step in wanted_steps)
        and (not wanted_ranks or (0 if folder.rank is None else folder.rank) in wanted_ranks)
    ]
    if not chosen:
        raise UsageError(missing(run, steps, ranks))
    return chosen


class Answer:
    """The rows of a query, made while they are iterated."""

    def __init__(self, run: Run, query: Query, language: str = ENGLISH) -> None:
        if query.sort and query.sort.lower() not in _KEYS:
            raise UsageError(say("error.sort", text=query.sort, allowed=list(_KEYS)))
        self._query = query  # which tensors
        self._label = say("progress.reading").text(language)  # of the progress line
        self._folders = folders(run, query.steps, query.ranks)
        self.broken: list[Sentence | str] = []  # the dumps that could not be read, and why
        self.notes: list[Sentence] = []  # remarks on the dumps that were read
        self.total = 0  # how many tensors fit

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = self._all()
        if self._query.sort:
            key = _KEYS[self._query.sort.lower()]
            yield from heapq.nlargest(
                self._query.rows or ROWS, rows, key=lambda row: _sort_key(row[key])
            )
            return
        for place, row in enumerate(rows):
            if not self._query.rows or place < self._query.rows:
                yield row

    def _all(self) -> Iterator[dict[str, Any]]:
        for folder in progress(self._folders, self._label):
            dump = Dump(folder)
            try:
                for call in dump.calls(cell=self._query.names.cell or None):
                    before = self.total
                    yield from self._rows(dump, call)
                    if self.total > before:
                        self.notes += _unread(call.name, call.entry)
                self.notes += dump.document.notes
            except UsageError as error:
                self.broken.append(said_of(error))

    def _rows(self, dump: Dump, call: Call) -> Iterator[dict[str, Any]]:
        query = self._query
        names = query.names._replace(cell="")  # the call is in such a Cell
        if query.raised and call.raised is None:
            return
        tensors: Iterable[Tensor | None] = (
            (list(call.tensors()) or [None]) if query.raised else call.tensors()
        )
        for tensor in tensors:
            name = tensor.name if tensor else call.name
            if not names.fits(name):
                continue
            if query.nonfinite and not (tensor and tensor.is_nonfinite):
                continue
            self.total += 1
            yield _row(dump, call, name, tensor, query.stack)


def _row(
    dump: Dump, call: Call, name: str, tensor: Tensor | None, with_stack: bool
) -> dict[str, Any]:
    record = tensor.record if tensor else {}
    stack = call.stack
    row = {
        **further(record),
        "step": dump.step,
        "rank": dump.rank,
        "cell": call.cell,
        "tensor": name,
        "dtype": record.get("dtype"),
        "shape": text.shape(record.get("shape")) if tensor else None,
        **{key: record.get(key) for key in SHOWN},
        "raised": call.raised,
        "line": stack[0] if stack else None,
    }
    if with_stack:
        row["stack"] = stack
    return row


def _further(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return the further statistics of rows or records, in their order."""
    return list(
        dict.fromkeys(key for row in rows for key in further(row) if key not in (*COLUMNS, "stack"))
    )


def _sort_key(value: Any) -> float:
    found = real(value)
    return -math.inf if found is None else math.inf if math.isnan(found) else found


def _begun(answer: Answer) -> tuple[list[dict[str, Any]], Iterator[dict[str, Any]]]:
    """Return the first rows of an answer, which have the names of all further statistics, and all its rows."""
    rows = iter(answer)
    first = list(itertools.islice(rows, 1000))
    return first, itertools.chain(first, rows)


def write_text(answer: Answer, file: IO[str], width: int, language: str) -> None:
    """Write the rows for people, in blocks; the width of the columns is that of their first rows."""
    many = len({(folder.step, folder.rank) for folder in answer._folders}) > 1
    first, rows = _begun(answer)
    keys = [*NUMBERS, *_further(first)]
    shown = 0
    header = [
        *words(language, *_PLACES[: 2 * many], "show.tensor", "show.dtype", "show.shape"),
        *map(text.safe, keys),
    ]
    while (block := list(itertools.islice(rows, 200))) or not shown:
        cells = [_cells(row, many, keys) for row in block]
        lines = text.columns([header, *cells], 0 if many else width, 3 if many else 1).split("\n")
        if not shown:
            print(text.fit(lines[0], width), file=file)
        for line, row in zip(lines[1:], block):
            print(text.fit(line, width), file=file)
            raised = (
                [say("show.raised", error=row["raised"]).text(language)] if row["raised"] else []
            )
            for frame in raised + row.get("stack", []):
                print(text.fit("      " + text.safe(" ".join(frame.split())), width), file=file)
        shown += len(block)
        if not block:
            break
    rest = answer.total - shown
    if rest > 0:
        print(say("show.more", count=rest).text(language), file=file)


def _cells(row: dict[str, Any], many: bool, keys: Sequence[str]) -> list[str]:
    place = [text.number(row["step"]), text.number(row["rank"])] if many else []
    cells = [text.safe(row["tensor"]), text.safe(row["dtype"] or "-"), row["shape"] or "-"]
    return [*place, *cells, *(text.number(row.get(key)) for key in keys)]


def write_rows(answer: Answer, file: IO[str], form: str) -> None:
    """Write the rows as csv or as one JSON list."""
    if form == "csv":
        first, rows = _begun(answer)
        header = [*COLUMNS, *["stack"][: answer._query.stack], *_further(first)]
        texts = ({**row, "stack": " | ".join(row.get("stack", ()))} for row in rows)
        write_csv(file, header, ([row.get(key) for key in header] for row in texts))
        return
    file.write("[")
    for place, row in enumerate(answer):
        file.write(("," if place else "") + "\n " + json.dumps(row))
    file.write("\n]\n")


def answer_to(
    run: Run, query: Query, form: str, width: int, language: str, file: IO[str]
) -> tuple[list[Sentence], int]:
    """Write the answer to a query; return the remarks on the dumps, and the number of broken dumps."""
    answer = Answer(run, query, language)
    if form == "text":
        write_text(answer, file, width, language)
    else:
        write_rows(answer, file, form)
    if len(answer.broken) == len(answer._folders):
        raise UsageError(say("clauses", parts=answer.broken))
    notes = [
        *(say("show.broken_because", reason=reason) for reason in answer.broken),
        *answer.notes,
    ]
    if not answer.total and not answer.broken:
        notes.append(say("show.nothing_fits"))
    return notes, len(answer.broken)
