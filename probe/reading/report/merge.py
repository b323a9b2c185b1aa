# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Puts the parts of all steps and ranks together: one table of texts, one column for each kind of number."""

from __future__ import annotations

from array import array
from typing import Any

from probe.findings.sentence import Sentence
from probe.reading.report import part as kinds
from probe.reading.report.columns import Texts, joined
from probe.reading.report.part import CALL_COLUMNS, ROW_COLUMNS, ROW_NUMBERS, TABLES, Column, Part

#: this many rows are kept as they are; above it, one rank of each group stands for the others
WHOLE = 300_000
_HARD = frozenset(kinds.VERDICTS.index(verdict) for verdict in ("differs", "shape", "one side", "argument"))


class Merged:
    """The columns of a whole report."""

    def __init__(self, parts: list[Part], everything: bool = False) -> None:
        self.texts = {table: Texts() for table in dict.fromkeys(TABLES.values())}  # the tables of texts
        self.notes: dict[int, Sentence] = {}  # call -> remark
        self.histograms: dict[int, list[int]] = {}  # row -> histogram
        #: for each part where its calls and rows are: step, rank, calls, rows, and the unit that stands for it
        self.units: list[dict[str, Any]] = []
        self.dropped = 0  # how many calls others stand for
        rows = sum(len(part.rows.get("place", ())) for part in parts)
        stands_for = [-1] * len(parts) if everything or rows <= WHOLE else groups(parts)
        columns: dict[str, list[Column]] = {name: [] for name in (*CALL_COLUMNS, *ROW_COLUMNS, *ROW_NUMBERS)}
        columns["index"] = []
        first_call = first_row = 0
        for number, part in enumerate(parts):
            kept = self._add(part, columns, first_call, first_row, stands_for[number])
            self.units.append({
                "step": part.step, "rank": part.rank, "calls": [first_call, first_call + kept[0]],
                "rows": [first_row, first_row + kept[1]], "like": stands_for[number], "error": part.error,
            })  # fmt: skip
            first_call, first_row = first_call + kept[0], first_row + kept[1]
        self.calls = {name: joined(columns[name]) for name in (*CALL_COLUMNS, "index")}  # the columns of all calls
        self.rows = {name: joined(columns[name]) for name in (*ROW_COLUMNS, *ROW_NUMBERS)}  # the columns of all places

    def _add(
        self, part: Part, columns: dict[str, list[Column]], first_call: int, first_row: int, like: int
    ) -> tuple[int, int]:
        """Add a part; return how many calls and rows of it were kept."""
        calls, rows = part.calls, part.rows
        if not calls:
            return 0, 0
        places, row_places = list(range(len(calls["name"]))), None
        if like >= 0:
            places, row_places = marked(part)
            self.dropped += len(calls["name"]) - len(places)
            calls = {name: array(column.typecode, [column[i] for i in places]) for name, column in calls.items()}
            rows = {name: array(column.typecode, [column[i] for i in row_places]) for name, column in rows.items()}
        numbers = {table: self.texts[table].numbers(texts) for table, texts in part.tables.items()}
        for name, column in {**calls, **rows}.items():
            if name in TABLES:
                table = numbers[TABLES[name]]
                columns[name].append(array(column.typecode, [table[int(place)] for place in column]))
            else:
                columns[name].append(column)
        columns["index"].append(array("i", places))
        where = {place: first_call + at for at, place in enumerate(places)}
        self.notes.update((where[place], note) for place, note in part.extras.notes.items() if place in where)
        rows_at = {place: at for at, place in enumerate(row_places)} if row_places is not None else None
        for place, counts in part.extras.histograms.items():
            self.histograms[first_row + (place if rows_at is None else rows_at[place])] = counts
        return len(places), len(rows["place"])


def groups(parts: list[Part]) -> list[int]:
    """Return for each part the one that stands for it, -1 for those that stand for themselves.

    Ranks that make the same calls in a step are a group, and its first one is whole. If that is still too much, the
    first and the last step of each group are whole.
    """
    found = _groups(parts, [part.step for part in parts])
    rows = sum(len(part.rows.get("place", ())) for part, like in zip(parts, found) if like < 0)
    if rows <= WHOLE:
        return found
    steps = [part.step for part in parts]
    last = steps[-1] if steps else None
    return _groups(parts, [step == last and last != steps[0] for step in steps])


def _groups(parts: list[Part], keys: list[Any]) -> list[int]:
    first: dict[Any, int] = {}
    found = []
    for number, (part, key) in enumerate(zip(parts, keys)):
        other = first.setdefault((key, part.names_key or number), number)
        found.append(-1 if other == number else other)
    return found


def marked(part: Part) -> tuple[list[int], list[int]]:
    """Return the calls that are not as they should be, and their rows."""
    calls: list[int] = []
    rows: list[int] = []
    verdicts = part.rows["verdict"]
    start = 0
    for place, (state, count) in enumerate(zip(part.calls["state"], part.calls["rows"])):
        own = range(start, start + int(count))
        start += int(count)
        if state != kinds.OK or place in part.extras.notes or any(verdicts[row] in _HARD for row in own):
            calls.append(place)
            rows += own
    return calls, rows
