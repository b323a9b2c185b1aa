# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a report that one step of one rank makes. It goes from the process that reads to the one that writes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, Union

from probe.findings.sentence import Sentence
from probe.reading.compare.origins.origin import Origin
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.dumps.document import lost
from probe.reading.dumps.guard_findings import GuardFinding
from probe.reading.one_run.nan import Found
from probe.reading.one_run.rank_checks import Digest
from probe.reading.report.columns import Texts, single

#: the states of a call, in the order of their weight; the page has the words
STATES = ("ok", "unknown", "close_to_overflow", "carried", "only_a", "only_b", "argument", "grown", "nan", "origin")
OK, UNKNOWN, NEAR, CARRIED, ONLY_A, ONLY_B, ARGUMENT, GROWN, NAN, ORIGIN = range(len(STATES))
#: the verdicts on a place of a call, as the comparison has them
VERDICTS = (
    "", "same", "equal numbers", "other bits", "close", "near zero", "differs", "shape", "one side", "unknown",
    "argument", "transposed", "not combined", "other batch",
)  # fmt: skip
NUMBERS = ("Max", "Min", "Mean", "Norm")
CALL_COLUMNS = {"name": "i", "name_a": "i", "cell": "i", "how": "B", "state": "B", "stack": "i", "rows": "i"}
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


@dataclass
class Extras:
    """The rare parts of a step."""

    #: call -> what else its entry says, as a sentence: that it raised, or is pending
    notes: dict[int, Sentence] = field(default_factory=dict)
    #: row -> counts of elements by the logarithm of their relative error
    histograms: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class StepNumbers:
    """The numbers of one step that lines show."""

    losses: dict[str, tuple[str, float]] = field(default_factory=dict)  # side -> (name of the call, the number)
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
    series: StepNumbers = field(default_factory=StepNumbers)  # the numbers of this step that lines show
    summary: UnitSummary | None = None  # the summary of the comparison, of two runs
    found: Found | None = None  # where NaN or Inf is made, of one run
    digest: Digest | None = None  # what must be equal on other ranks
    names_key: str = ""  # a key of the sequence of its calls

    @property
    def lost(self) -> str:
        """The parts of its dump that could not be read."""
        return self.found.lost if self.found else lost(self.summary.notes) if self.summary else ""

    @property
    def error(self) -> str:
        """Why the dump could not be read, or ""."""
        return (self.summary.error if self.summary else "") or (self.found.error if self.found else "")

    def guards(self) -> list[GuardFinding]:
        """Return what guards have told while the training ran."""
        return self.found.guards if self.found else []

    def origins(self) -> list[Origin]:
        """Return the calls that make NaN or Inf."""
        return self.found.origins if self.found else []


class PartMaker:
    """Collects the calls and rows of a part."""

    def __init__(self, part: Part) -> None:
        self.part = part  # the part that gets them
        self.texts = {table: Texts() for table in dict.fromkeys(TABLES.values())}
        self.calls: list[tuple[int, ...]] = []
        self.rows: list[tuple[Any, ...]] = []

    def finish(self) -> Part:
        """Turn what was collected into columns."""
        part = self.part
        columns = list(zip(*self.calls)) or [()] * len(CALL_COLUMNS)
        part.calls = {name: array(code, column) for (name, code), column in zip(CALL_COLUMNS.items(), columns)}
        whole = list(zip(*self.rows)) or [()] * (len(ROW_COLUMNS) + len(ROW_NUMBERS))
        part.rows = {name: array(code, column) for (name, code), column in zip(ROW_COLUMNS.items(), whole)}
        for name, column in zip(ROW_NUMBERS, whole[len(ROW_COLUMNS) :]):
            part.rows[name] = single(column)
        part.tables = {table: list(texts) for table, texts in self.texts.items()}
        return part
