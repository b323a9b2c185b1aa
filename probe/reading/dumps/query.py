# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""``probe show`` with a question: the tensors that fit, as text, csv or JSON. One dump at a time is in memory."""

from __future__ import annotations

import dataclasses
import heapq
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, say
from probe.process.progress import progress
from probe.reading.dumps import text
from probe.reading.dumps.dump import Call, Dump, Tensor
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.run import Run
from probe.reading.dumps.show import words
from probe.reading.dumps.tables import write_csv
from probe.reading.dumps.values import NUMBERS, SHOWN, real

_KEYS = {key.lower(): key for key in SHOWN}
COLUMNS = ("step", "rank", "cell", "tensor", "dtype", "shape", *SHOWN, "raised", "line")
_PLACES = ("show.step", "show.rank")
#: how many rows are shown where nothing is said: on a terminal, and of a sorted list
ROWS = 40


@dataclasses.dataclass(frozen=True)
class Query:
    """Which tensors are asked for."""

    like: str = ""  # a part of the name
    regex: str = ""  # a regular expression that is searched for in the name
    cell: str = ""  # a part of the path of the Cell
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
            raise UsageError(f"{name}: {given!r} is not allowed. Allowed: numbers and ranges, as 0,4-6.")
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def folders(run: Run, steps: str, ranks: str) -> list[DumpFolder]:
    """Return the folders of these steps and ranks; raise UsageError when there is none."""
    wanted_steps, wanted_ranks = numbers(steps, "--step"), numbers(ranks, "--rank")
    chosen = [
        folder
        for folder in run.folders
        if (not wanted_steps or folder.step in wanted_steps)
        and (not wanted_ranks or (0 if folder.rank is None else folder.rank) in wanted_ranks)
    ]
    if not chosen:
        raise UsageError(
            f"no dump of step {steps or 'any'}, rank {ranks or 'any'}. Steps: {run.steps}; ranks: {run.ranks}"
        )
    return chosen


class Answer:
    """The rows of a query, made while they are iterated."""

    def __init__(self, run: Run, query: Query) -> None:
        if query.sort and query.sort.lower() not in _KEYS:
            raise UsageError(f"--sort: {query.sort!r} is not allowed. Allowed: {', '.join(_KEYS)}.")
        try:
            self._pattern = re.compile(query.regex) if query.regex else None
        except re.error as error:
            raise UsageError(f"--regex: {query.regex!r} is no regular expression: {error}") from error
        self._query = query  # which tensors
        self._folders = folders(run, query.steps, query.ranks)
        self.broken: list[str] = []  # the dumps that could not be read, and why
        self.notes: list[Sentence] = []  # remarks on the dumps that were read
        self.total = 0  # how many tensors fit

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = self._all()
        if self._query.sort:
            key = _KEYS[self._query.sort.lower()]
            yield from heapq.nlargest(self._query.rows or ROWS, rows, key=lambda row: _sort_key(row[key]))
            return
        for place, row in enumerate(rows):
            if not self._query.rows or place < self._query.rows:
                yield row

    def _all(self) -> Iterator[dict[str, Any]]:
        for folder in progress(self._folders, "reading"):
            dump = Dump(folder)
            try:
                for call in dump.calls(cell=self._query.cell or None):
                    yield from self._rows(dump, call)
                self.notes += dump.document.notes
            except UsageError as error:
                self.broken.append(str(error))

    def _rows(self, dump: Dump, call: Call) -> Iterator[dict[str, Any]]:
        query = self._query
        if query.raised and call.raised is None:
            return
        tensors: Iterable[Tensor | None] = (list(call.tensors()) or [None]) if query.raised else call.tensors()
        for tensor in tensors:
            name = tensor.name if tensor else call.name
            if (query.like and query.like not in name) or (self._pattern and not self._pattern.search(name)):
                continue
            if query.nonfinite and not (tensor and tensor.is_nonfinite):
                continue
            self.total += 1
            yield _row(dump, call, name, tensor, query.stack)


def _row(dump: Dump, call: Call, name: str, tensor: Tensor | None, with_stack: bool) -> dict[str, Any]:
    record = tensor.record if tensor else {}
    stack = call.stack
    row = {
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


def _sort_key(value: Any) -> float:
    found = real(value)
    return -math.inf if found is None else math.inf if math.isnan(found) else found


def write_text(answer: Answer, file: IO[str], width: int, language: str) -> None:
    """Write the rows for people; the width of the columns is that of their first rows."""
    many = len({(folder.step, folder.rank) for folder in answer._folders}) > 1
    block: list[list[str]] = []
    stacks: list[list[str]] = []
    header = [*words(language, *_PLACES[: 2 * many], "show.tensor", "show.dtype", "show.shape"), *NUMBERS]
    left = 3 if many else 1
    shown = 0

    def flush() -> None:
        lines = text.columns([header, *block], 0 if many else width, left).split("\n")
        if shown == len(block):
            print(text.fit(lines[0], width), file=file)
        for line, frames in zip(lines[1:], stacks):
            print(text.fit(line, width), file=file)
            for frame in frames:
                print(text.fit("      " + text.safe(" ".join(frame.split())), width), file=file)
        block.clear()
        stacks.clear()

    for row in answer:
        shown += 1
        cells = [text.safe(row["tensor"]), text.safe(row["dtype"] or "-"), row["shape"] or "-"]
        cells += [text.number(row[key]) for key in NUMBERS]
        cells = [*([text.number(row["step"]), text.number(row["rank"])] if many else []), *cells]
        block.append(cells)
        raised = [say("show.raised", error=row["raised"]).text(language)] if row["raised"] else []
        stacks.append(raised + row.get("stack", []))
        if len(block) == 200:
            flush()
    if block or not shown:
        flush()
    rest = answer.total - shown
    if rest > 0:
        print(say("show.more", count=rest).text(language), file=file)


def write_rows(answer: Answer, file: IO[str], form: str) -> None:
    """Write the rows as csv or as one JSON list."""
    if form == "csv":
        rows = (
            [*(row[key] for key in COLUMNS), *([" | ".join(row["stack"])] if "stack" in row else [])] for row in answer
        )
        header = (*COLUMNS, "stack") if answer._query.stack else COLUMNS
        write_csv(file, header, rows)
        return
    file.write("[")
    for place, row in enumerate(answer):
        file.write(("," if place else "") + "\n " + json.dumps(row))
    file.write("\n]\n")


def answer_to(run: Run, query: Query, form: str, width: int, language: str) -> tuple[list[Sentence], int]:
    """Print the answer to a query; return the remarks on the dumps, and the number of broken dumps."""
    answer = Answer(run, query)
    if form == "text":
        write_text(answer, sys.stdout, width, language)
    else:
        write_rows(answer, sys.stdout, form)
    if len(answer.broken) == len(answer._folders):
        raise UsageError("; ".join(answer.broken))
    notes = [*(say("show.broken_because", reason=reason) for reason in answer.broken), *answer.notes]
    if not answer.total and not answer.broken:
        notes.append(say("show.nothing_fits"))
    return notes, len(answer.broken)
