# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of a report that one step of one rank makes. It goes from the process that reads to the one that writes."""

from __future__ import annotations

import hashlib
import json
from array import array
from dataclasses import dataclass, field
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.distances.distance import UNKNOWN as UNKNOWN_DISTANCE
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.document import lost
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD, GRADIENT, cell_label
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.text import safe, shape, shorten
from probe.reading.dumps.values import NUMBERS, is_tensor, plain, real
from probe.reading.one_run.health.run_look import StepFacts
from probe.reading.one_run.nan import Found
from probe.reading.one_run.rank_digest import Digest
from probe.reading.report.columns import Column, Texts, single
from probe.reading.report.step_numbers import StepNumbers

#: the states of a call, in the order of their weight; the page has the words
STATES = ("ok", "unknown", "close_to_overflow", "finding", "carried", "only_a", "only_b", "argument", "grown", "nan",
          "independent", "origin")  # fmt: skip
OK, UNKNOWN, NEAR, FINDING, CARRIED, ONLY_A, ONLY_B, ARGUMENT, GROWN, NAN, INDEPENDENT, ORIGIN = (
    range(len(STATES))
)
#: the verdicts on a place of a call, as the comparison has them
VERDICTS = (
    "", "same", "equal numbers", "other bits", "close", "near zero", "differs", "shape", "one side", "unknown",
    "argument", "transposed", "not combined", "other batch",
)  # fmt: skip
_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
_VALUE = 300
#: key of an entry -> the sentence about it
_NOTES = {"raised": "report.raised", "pending": "report.pending", "error": "report.error"}
CALL_COLUMNS = {
    "name": "i",
    "name_a": "i",
    "cell": "i",
    "how": "B",
    "state": "B",
    "stack": "i",
    "rows": "i",
}
ROW_COLUMNS = {
    "place": "i", "verdict": "B", "type_a": "i", "type_b": "i", "value_a": "i", "value_b": "i", "producer": "i",
    "exact": "B",
}  # fmt: skip
ROW_NUMBERS = ("rel", "abs", *(f"{name}_{side}" for name in NUMBERS for side in "ab"))
#: which table of texts a column's numbers belong to
TABLES = {
    "name": "names", "name_a": "names", "cell": "cells", "how": "hows", "stack": "stacks", "place": "places",
    "type_a": "types", "type_b": "types", "value_a": "values", "value_b": "values",
}  # fmt: skip


@dataclass
class Extras:
    """The rare parts of a step."""

    #: call -> what else its entry says, as a sentence: that it raised, or is pending
    notes: dict[int, Sentence] = field(default_factory=dict)
    #: row -> counts of elements by the logarithm of their relative error
    histograms: dict[int, list[int]] = field(default_factory=dict)
    #: the facts of the rules that look at one run alone
    looked: StepFacts | None = None


@dataclass
class Part:
    """One step of one rank."""

    step: int | None
    rank: Any
    calls: dict[str, Column] = field(default_factory=dict)
    rows: dict[str, Column] = field(default_factory=dict)  # the columns of their places
    tables: dict[str, list[str]] = field(default_factory=dict)  # name of a table -> its texts
    parents: dict[str, str] = field(default_factory=dict)  # Cell -> the Cell around it
    extras: Extras = field(default_factory=Extras)  # remarks on calls, and histograms of rows
    series: StepNumbers = field(default_factory=StepNumbers)  # the numbers that lines show
    summary: UnitSummary | None = None  # the summary of the comparison, of two runs
    found: Found | None = None  # where NaN or Inf is made, of one run
    digest: Digest | None = None  # what must be equal on other ranks
    names_key: str = ""  # a key of the sequence of its calls

    @property
    def lost(self) -> Sentence:
        """The parts of its dump that could not be read."""
        if self.found:
            return self.found.lost
        return lost(self.summary.notes) if self.summary else NOTHING

    @property
    def error(self) -> Sentence:
        """Why the dump could not be read, or NOTHING."""
        of_two = self.summary.error if self.summary else NOTHING
        return of_two or (self.found.error if self.found else NOTHING)


class PartMaker:
    """Collects the calls and rows of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part  # the part that gets them
        self._texts = {table: Texts() for table in dict.fromkeys(TABLES.values())}
        self._calls: list[tuple[int, ...]] = []
        self.rows: list[tuple[Any, ...]] = []
        self._stacks: dict[int, int] = {}

    def add_call(
        self,
        dump: Dump,
        flow: Flow,
        place: int,
        state: int,
        before: int,
        how: str = "",
        name_a: str | None = None,
    ) -> None:
        """Add a call after its rows, of which ``before`` are not its own; ``name_a`` is its name in A, if another."""
        name = flow.names[place]
        texts = self._texts
        stacks = dump.stacks
        frames = stacks.get(name) or stacks.get(flow.parts[place].forward)
        entry = dump.data[name]
        notes = _notes(entry) if isinstance(entry, dict) else []
        if notes:
            self._part.extras.notes[len(self._calls)] = clauses(*notes)
        self._calls.append(
            (
                texts["names"].number(safe(name)),
                texts["names"].number(name_a and safe(name_a)),
                texts["cells"].number(safe(own_cell(flow, place))),
                texts["hows"].number(how),
                state,
                self._stack(frames),
                len(self.rows) - before,
            )
        )

    def add_row(self, where: str, a: Any, b: Any, producer: int, slot: Slot | None = None) -> None:
        """Add a value of a call in A and B, None where a side has none; ``producer`` is -1 where no call made it."""
        types = self._texts["types"]
        type_a = types.number(type_text(a))
        type_b = type_a if _same_type(a, b) else types.number(type_text(b))
        distance = slot.distance if slot else UNKNOWN_DISTANCE
        judged = distance.exact, distance.rel_l2, distance.max_abs
        self.rows.append(
            (
                self._texts["places"].number(safe(where)),
                _CODES.get(slot.verdict, 0) if slot else 0,
                type_a,
                type_b,
                self._value(a),
                self._value(b),
                producer,
                *judged,
                *numbers(a, b),
            )
        )

    def _value(self, value: Any) -> int:
        """Return the number of a plain value's text; -1 for tensors and for nothing."""
        if value is None or is_tensor(value):
            return -1
        return self._texts["values"].number(shorten(safe(repr(plain(value))), _VALUE))

    def _stack(self, frames: list[str] | None) -> int:
        if not frames:
            return -1
        known = self._stacks.get(id(frames))
        if known is None:
            known = self._texts["stacks"].number(json.dumps(frames))
            self._stacks[id(frames)] = known
        return known

    def finish(self, names: list[str], *constructs: dict[str, str | None]) -> None:
        """Turn what was collected into columns; the names are equal on all ranks that make the same calls."""
        part = self._part
        call_columns = _columns(self._calls, len(CALL_COLUMNS))
        for (name, code), column in zip(CALL_COLUMNS.items(), call_columns):
            part.calls[name] = array(code, column)
        row_columns = _columns(self.rows, len(ROW_COLUMNS) + len(ROW_NUMBERS))
        for (name, code), column in zip(ROW_COLUMNS.items(), row_columns):
            part.rows[name] = array(code, column)
        for name, column in zip(ROW_NUMBERS, row_columns[len(ROW_COLUMNS) :]):
            part.rows[name] = single(column)
        part.tables = {table: list(texts) for table, texts in self._texts.items()}
        part.parents = cell_parents(*constructs)
        sequence = "\n".join(names).encode("utf-8", "backslashreplace")
        part.names_key = hashlib.blake2b(sequence, digest_size=16).hexdigest()


def _notes(entry: dict[str, Any]) -> list[Sentence]:
    """Return what else an entry says: that its call raised, or is pending."""
    notes = []
    for key, sentence in _NOTES.items():
        if key in entry:
            notes.append(say(sentence, text=shorten(safe(entry[key]), _VALUE)))
    return notes


def _columns(lines: list[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """Return the columns of lines; without a line so many empty ones."""
    return list(zip(*lines)) or [()] * count


def own_cell(flow: Flow, place: int) -> str:
    """Return the Cell that a call belongs to; a Cell's own entries belong to it."""
    parts = flow.parts[place]
    own = flow.names[place] if parts.kind in (CELL, GRADIENT) else flow.cells[place]
    return cell_label(own) or ""


def cell_parents(*constructs: dict[str, str | None]) -> dict[str, str]:
    """Return Cell -> the Cell around it, "" for the outermost."""
    found: dict[str, str] = {}
    for construct in constructs:
        cells = dict.fromkeys(parent for parent in construct.values() if parent)
        own = [name for name in construct if name.startswith(("Cell.", "Module."))]
        for name in (*cells, *own):
            found.setdefault(_label(name), _label(construct.get(name)))
    return found


def _label(name: str | None) -> str:
    return safe(cell_label(name) or "")


def producer_of(flow: Flow, place: int, where: str, record: Any, calls: dict[int, int]) -> int:
    """Return the call that made the tensor at a place; -1 where none did, and for an output."""
    if where.startswith("output"):
        return NONE
    if flow.parts[place].direction == FORWARD:
        for link in flow.links[place]:
            if link.place == where:
                return calls.get(link.producer, NONE)
        return NONE
    own = flow.names[place]
    producer = flow.producer(own, where, record)
    if producer is None or producer == own:
        return NONE
    return calls.get(flow.position[producer], NONE)


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is not dict or type(b) is not dict:
        return False
    return all(a.get(key) == b.get(key) for key in ("type", "dtype", "shape"))


def type_text(value: Any) -> str | None:
    """Return the dtype and the shape of a tensor as a text; None for other values."""
    if not is_tensor(value):
        return None
    lengths = shape(value.get("shape"))
    return safe(f"{value.get('dtype')} {lengths}")


def numbers(a: Any, b: Any) -> list[float | None]:
    """Return the four numbers of two records, alternately."""
    record_a = a if is_tensor(a) else {}
    record_b = b if is_tensor(b) else {}
    values = [value for key in NUMBERS for value in (record_a.get(key), record_b.get(key))]
    return [value if type(value) is float else real(value) for value in values]


def rank_text(rank: Any) -> str:
    """Return the name of a rank as the page has it; a process without a number has "-"."""
    return "-" if rank is None else str(rank)
