# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison: csv, JSON lines, xlsx, and msprobe's own columns."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from probe.reading import entry_name
from probe.reading.compare.align import NONE
from probe.reading.tables import write_xlsx
from probe.reading.text import csv_text
from probe.reading.values import is_tensor, plain

if TYPE_CHECKING:
    from probe.reading.compare.comparison import Comparison
    from probe.reading.compare.unit import Comparing, UnitSummary

COLUMNS = (
    "step", "rank", "cell", "call_a", "call_b", "how", "place", "verdict", "rel_l2", "max_abs", "exact",
    "dtype_a", "dtype_b", "shape_a", "shape_b",
    "Max_a", "Max_b", "Min_a", "Min_b", "Mean_a", "Mean_b", "Norm_a", "Norm_b",
)  # fmt: skip


def unit_rows(comparing: Comparing) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one step and rank, with the values of ``COLUMNS``."""
    flow_a, flow_b = comparing.alignment.flows
    step, rank = comparing.b.step, comparing.b.rank
    labels: dict[str | None, str | None] = {}
    for pair, slots in zip(comparing.pairs, comparing.slots):
        name_a = flow_a.names[pair.a] if pair.a != NONE else None
        name_b = flow_b.names[pair.b] if pair.b != NONE else None
        around = flow_b.cells[pair.b] if pair.b != NONE else flow_a.cells[pair.a]
        if around not in labels:
            labels[around] = entry_name.cell_label(around)
        head = (step, rank, labels[around], name_a, name_b, pair.how)
        if not slots and (name_a is None or name_b is None):
            yield (*head, None, "only in B" if name_a is None else "only in A", *(None,) * 15)
        for place, _, a, b, distance, verdict in slots:
            if not is_tensor(a) and not is_tensor(b):
                if verdict:
                    yield (*head, place, verdict, None, None, None, None, None, _plain(a), _plain(b), *(None,) * 8)
                continue
            get_a = a.get if type(a) is dict else _NOTHING
            get_b = b.get if type(b) is dict else _NOTHING
            yield (
                *head, place, verdict, *distance, get_a("dtype"), get_b("dtype"),
                _shape(get_a("shape")), _shape(get_b("shape")),
                get_a("Max"), get_b("Max"), get_a("Min"), get_b("Min"),
                get_a("Mean"), get_b("Mean"), get_a("Norm"), get_b("Norm"),
            )  # fmt: skip


def _NOTHING(key: str) -> None:
    return None


def _plain(value: Any) -> str | None:
    return None if value is None else str(plain(value))


def _shape(value: Any) -> str | None:
    return "x".join(map(str, value)) if type(value) is list else None


def write_unit(path: str, form: str, comparing: Comparing, summary: UnitSummary) -> None:
    """Write the rows of one step and rank into a file of their own."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        if form == "csv":
            clean = _Cleaner()
            csv.writer(file, lineterminator="\n").writerows(map(clean.row, unit_rows(comparing)))
        elif form == "jsonl":
            for row in unit_rows(comparing):
                file.write(json.dumps(dict(zip(COLUMNS, row))) + "\n")
        else:
            from probe.reading.compare.msprobe_table import rows

            clean = _Cleaner()
            csv.writer(file, lineterminator="\n").writerows(clean.row(row) for row in rows(comparing))


class _Cleaner:
    """Makes texts safe for a spreadsheet, each once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def row(self, row: tuple[Any, ...]) -> list[Any]:
        """Return a row of safe cells."""
        known = self._known
        cells: list[Any] = []
        for value in row:
            if type(value) is str:
                safe = known.get(value)
                if safe is None:
                    safe = known[value] = csv_text(value)
                cells.append(safe)
            elif value is None or type(value) is float or type(value) is int or type(value) is bool:
                cells.append(value)
            else:
                cells.append(csv_text(str(value)))
        return cells


def join_parts(parts: list[str], form: str, path: str | os.PathLike[str]) -> None:
    """Put the files of all steps and ranks together, under one header."""
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as out:
        if form != "jsonl":
            from probe.reading.compare.msprobe_table import STATISTICS_COLUMNS

            header = io.StringIO()
            csv.writer(header, lineterminator="\n").writerow(COLUMNS if form == "csv" else STATISTICS_COLUMNS)
            out.write(header.getvalue())
        for part in parts:
            if os.path.exists(part):
                with open(part, encoding="utf-8", newline="") as file:
                    shutil.copyfileobj(file, out)
                os.remove(part)


def to_xlsx(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write sheets: the summary, the origins, and every tensor.

    Raises:
        UsageError: when XlsxWriter is not installed.
    """
    origins = [origin.to_dict() for origin in (*comparison.origins, *comparison.later)]
    keys = ("kind", "step", "rank", "name", "place", "cell", "sentence", "file", "line", "source")
    summary = [(line,) for line in str(comparison).split("\n")]
    write_xlsx(
        path,
        {
            "summary": (("summary",), summary),
            "origins": (keys, [tuple(origin[key] for key in keys) for origin in origins]),
            "tensors": (COLUMNS, (tuple(row.values()) for row in comparison.table())),
            "only": (("only in A", "only in B"), [*_two(comparison.only_a, comparison.only_b)]),
        },
    )


def _two(a: list[str], b: list[str]) -> Iterator[tuple[str, str]]:
    for place in range(max(len(a), len(b))):
        yield (a[place] if place < len(a) else "", b[place] if place < len(b) else "")
