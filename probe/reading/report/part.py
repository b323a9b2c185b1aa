# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of a report that one step of one rank makes. It goes from the process that reads to the one that writes.

Its columns hold texts and numbers of calls and tensors, packed for the page. The numbers of a step that its trend lines
show are the loss, and the norms of the gradients.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.distances.distance import UNKNOWN as UNKNOWN_DISTANCE
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.origins.across_ranks import UnitSummary
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.document import lost
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import BACKWARD, CELL, DEBUG, FORWARD, GRADIENT, cell_label
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.text import safe, shape, shorten
from probe.reading.dumps.updates import is_update, series
from probe.reading.dumps.values import (
    NUMBERS,
    element_count,
    is_tensor,
    leaves,
    plain,
    real,
    tensors,
)
from probe.reading.one_run.health.run_look import StepFacts
from probe.reading.one_run.nan import Found
from probe.reading.one_run.rank_digest import Digest

#: stands for a number that the dump does not have: the smallest one of each kind
MISSING_SINGLE = 2.0**-149
MISSING_DOUBLE = 5e-324
_LARGEST = 3.4028234e38
_SMALLEST = 2e-45
_LEVEL = 6
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
Column = Union["array[int]", "array[float]"]


class Texts:
    """A table of texts, each once; a column holds their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """Return the number of a text; -1 for None."""
        return -1 if text is None else self._numbers.setdefault(text, len(self._numbers))

    def numbers(self, texts: Iterable[str]) -> list[int]:
        """Return the numbers of texts, with -1 as the last: the number of none."""
        return [*map(self.number, texts), -1]

    def __iter__(self) -> Any:
        return iter(self._numbers)


def single(values: Iterable[float | None]) -> array[float]:
    """Return numbers with half the digits, where that is enough for the page; else with all.

    >>> single([1.0, None]).typecode, single([1e300]).typecode
    ('f', 'd')
    """
    given = [MISSING_DOUBLE if value is None else value for value in values]
    for value in given:
        size = value if value >= 0.0 else -value
        if (_LARGEST < size < math.inf) or (MISSING_DOUBLE < size < _SMALLEST):
            return array("d", given)
    return array("f", [MISSING_SINGLE if value == MISSING_DOUBLE else value for value in given])


def doubled(numbers: array[float]) -> array[float]:
    """Return numbers with all digits; those that are missing stay so."""
    if numbers.typecode == "d":
        return numbers
    return array("d", [MISSING_DOUBLE if value == MISSING_SINGLE else value for value in numbers])


def joined(parts: Sequence[array[Any]]) -> array[Any]:
    """Return columns one after another; numbers get as many digits as the most exact needs."""
    if not parts:
        return array("i")
    if len({part.typecode for part in parts}) > 1:
        parts = [doubled(part) for part in parts]
    whole = array(parts[0].typecode)
    for part in parts:
        whole.extend(part)
    return whole


def packed_text(value: Any) -> str:
    """Return a value as JSON, compressed, in letters."""
    letters = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _letters(letters.encode("utf-8", "backslashreplace"))


def packed(column: array[Any], base: array[Any] | None = None) -> str:
    """Return a column, compressed, in letters; of a nearly equal ``base`` only the bits that differ are kept."""
    content = _little(column)
    if base is not None and base.typecode == column.typecode and len(base) == len(column):
        other = int.from_bytes(_little(base), "little")
        content = (int.from_bytes(content, "little") ^ other).to_bytes(len(content), "little")
    size = column.itemsize
    return _letters(b"".join(content[place::size] for place in range(size)))


def _little(column: array[Any]) -> bytes:
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def _letters(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, _LEVEL, mtime=0)).decode("ascii")


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
class StepNumbers:
    """The numbers of one step that lines show."""

    losses: dict[str, tuple[str, float]] = field(
        default_factory=dict
    )  # side -> (name of the call, the number)
    #: side -> tensor -> norm, of the gradients of parameters
    norms: dict[str, dict[str, float]] = field(default_factory=dict)
    #: side -> number of the first update of an optimizer -> value: learning rate and global norm
    updates: dict[str, dict[str, float]] = field(default_factory=dict)


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
    series: StepNumbers = field(
        default_factory=StepNumbers
    )  # the numbers of this step that lines show
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
        keys = [key for key in _NOTES if key in entry] if isinstance(entry, dict) else []
        if keys:
            said = [say(_NOTES[key], text=shorten(safe(entry[key]), _VALUE)) for key in keys]
            self._part.extras.notes[len(self._calls)] = clauses(*said)
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
        if id(frames) not in self._stacks:
            self._stacks[id(frames)] = self._texts["stacks"].number(json.dumps(frames))
        return self._stacks[id(frames)]

    def finish(self, names: list[str], *constructs: dict[str, str | None]) -> None:
        """Turn what was collected into columns; the names are equal on all ranks that make the same calls."""
        part = self._part
        columns = list(zip(*self._calls)) or [()] * len(CALL_COLUMNS)
        part.calls = {
            name: array(code, column) for (name, code), column in zip(CALL_COLUMNS.items(), columns)
        }
        whole = list(zip(*self.rows)) or [()] * (len(ROW_COLUMNS) + len(ROW_NUMBERS))
        part.rows = {
            name: array(code, column) for (name, code), column in zip(ROW_COLUMNS.items(), whole)
        }
        for name, column in zip(ROW_NUMBERS, whole[len(ROW_COLUMNS) :]):
            part.rows[name] = single(column)
        part.tables = {table: list(texts) for table, texts in self._texts.items()}
        part.parents = cell_parents(*constructs)
        sequence = "\n".join(names).encode("utf-8", "backslashreplace")
        part.names_key = hashlib.blake2b(sequence, digest_size=16).hexdigest()


def own_cell(flow: Flow, place: int) -> str:
    """Return the Cell that a call belongs to; a Cell's own entries belong to it."""
    parts = flow.parts[place]
    own = flow.names[place] if parts.kind in (CELL, GRADIENT) else flow.cells[place]
    return cell_label(own) or ""


def cell_parents(*constructs: dict[str, str | None]) -> dict[str, str]:
    """Return Cell -> the Cell around it, "" for the outermost."""
    found: dict[str, str] = {}
    for construct in constructs:
        cells = {parent for parent in construct.values() if parent}
        for name in (
            *cells,
            *(name for name in construct if name.startswith(("Cell.", "Module."))),
        ):
            found.setdefault(
                safe(cell_label(name) or ""), safe(cell_label(construct.get(name)) or "")
            )
    return found


def producer_of(flow: Flow, place: int, where: str, record: Any, calls: dict[int, int]) -> int:
    """Return the call that made the tensor at a place; -1 where none did, and for an output."""
    if where.startswith("output"):
        return NONE
    if flow.parts[place].direction == FORWARD:
        return next(
            (calls.get(link.producer, NONE) for link in flow.links[place] if link.place == where),
            NONE,
        )
    name = flow.producer(flow.names[place], where, record)
    return (
        NONE if name is None or name == flow.names[place] else calls.get(flow.position[name], NONE)
    )


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is not dict or type(b) is not dict:
        return False
    return all(a.get(key) == b.get(key) for key in ("type", "dtype", "shape"))


def type_text(value: Any) -> str | None:
    """Return the dtype and the shape of a tensor as a text; None for other values."""
    return safe(f"{value.get('dtype')} {shape(value.get('shape'))}") if is_tensor(value) else None


def numbers(a: Any, b: Any) -> list[float | None]:
    """Return the four numbers of two records, alternately."""
    get_a, get_b = (value.get if is_tensor(value) else {}.get for value in (a, b))
    values = (value for key in NUMBERS for value in (get_a(key), get_b(key)))
    return [value if type(value) is float else real(value) for value in values]


def add_numbers(numbers: StepNumbers, side: str, dump: Dump) -> None:
    """Add the numbers of a dump to those of its step; ``side`` is "a" or "b"."""
    found = loss(dump)
    if found is not None:
        numbers.losses[side] = found
    numbers.norms[side] = gradient_norms(dump)
    numbers.updates[side] = update_numbers(dump)


def rank_text(rank: Any) -> str:
    """Return the name of a rank as the page has it; a process without a number has "-"."""
    return "-" if rank is None else str(rank)


def loss(dump: Dump) -> tuple[str, float] | None:
    """Return the call whose output is the loss, and its number; None where there is none."""
    # a value saved under a name with "loss" in it; else the last output of one element before the backward
    found = None
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        entry = dump.data[name]
        if parts.kind == DEBUG and "loss" in parts.api.lower() and parts.direction != BACKWARD:
            value = _scalar(entry)
            if value is not None:
                return name, value
        if parts.direction == BACKWARD:
            if found:
                return found
        elif isinstance(entry, dict):
            value = _scalar(entry.get("output"))
            found = (name, value) if value is not None else found
    return found


def _scalar(part: Any) -> float | None:
    given = [record for _, record in tensors("", part)]
    if (
        len(given) == 1
        and element_count(given[0].get("shape")) == 1
        and "Float" in str(given[0].get("dtype"))
    ):
        return real(given[0].get("Mean", given[0].get("Max")))
    return None


def update_numbers(dump: Dump) -> dict[str, float]:
    """Return learning rate and global norm of the first update of an optimizer; {} where there is none."""
    found: dict[str, float] = {}
    updates = (
        name
        for name, parts in zip(dump.flow.names, dump.flow.parts)
        if is_update(parts, dump.data[name])
    )
    for name in itertools.islice(updates, 1):
        for key, value in series(name, dump.data[name]):
            found.setdefault(key[len(name) + 1 :].partition(".")[0], value)
    return found


def gradient_norms(dump: Dump) -> dict[str, float]:
    """Return gradient of a parameter -> its norm."""
    found = {}
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        if parts.kind == GRADIENT:
            for key, record in leaves(dump.data[name]):
                norm = real(record.get("Norm")) if is_tensor(record) else None
                if norm is not None:
                    found[f"{name}.{key}"] = norm
    return found
