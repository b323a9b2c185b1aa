# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The tables in a folder of kernels: statistic.csv and mapping.csv."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from probe.door import open_text, table_lines
from probe.findings.sentence import Sentence, say
from probe.reading.dumps.kernels.names import COLUMNS, HEAD, MAPPING, STATISTICS, ArrayName, dtype_name, parse
from probe.reading.dumps.shapes import lengths as wrong_lengths
from probe.reading.dumps.values import Record

#: above the number of inputs or outputs of any kernel, as in names of files
_SLOTS = 10_000
#: no float holds this number
_LARGEST = 1 << 1023


def read_mapping(folder: str, notes: list[Sentence]) -> dict[str, str]:
    """Return the names that were too long for a file, by the file's name; ``notes`` gets a remark if it is broken."""
    rows = [row for row in _rows(os.path.join(folder, MAPPING), csv.reader, notes) if len(row) == 2]
    # MindSpore writes the file's name first; other writers of this layout write it last
    return {**{last: first for first, last in rows if parse(first)}, **dict(rows)}


def read_statistics(folder: str, notes: list[Sentence]) -> Iterator[tuple[ArrayName, Record]]:
    """Yield the rows of statistic.csv, if the folder has one; notes get a remark for each line that is cut or wrong."""
    path = os.path.join(folder, STATISTICS)
    keys = {column: key for column, key in COLUMNS.values() if key}
    for number, row in enumerate(_rows(path, csv.DictReader, notes), 2):
        try:
            yield _row(row, keys)
        except (KeyError, TypeError, ValueError, AttributeError):  # noqa: PERF203 - one broken item does not hide the others
            notes.append(say("dump.line_cut", path=path, line=number))


def _rows(path: str, reader: Callable[[Iterator[str]], Iterable[Any]], notes: list[Sentence]) -> Iterator[Any]:
    """Yield the rows of a table, if it is there; ``notes`` gets a remark where it cannot be read."""
    try:
        with open_text(path, "replace", "") as file:
            yield from reader(table_lines(file))
    except FileNotFoundError:
        return
    except (OSError, csv.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        notes.append(say("dump.unreadable", path=path, error=reason))


def _row(row: dict[str, str], keys: dict[str, str]) -> tuple[ArrayName, Record]:
    row.setdefault("IO", row.get("Input/Output", ""))  # its older name
    op_type, op_name, task, stream, timestamp, side, slot, _, dtype, shape = (row[name] for name in HEAD)
    name = ArrayName(op_type, op_name, int(task), int(stream), int(timestamp), side, int(slot), "", dtype)
    if side not in ("input", "output") or not 0 <= name.slot < _SLOTS:
        raise ValueError(side)
    lengths = [int(part) for part in shape.strip("()[] ").replace("x", ",").split(",") if part.strip()]
    if wrong := wrong_lengths(lengths):
        raise ValueError(wrong)
    numbers = {key: _number(row[column]) for column, key in keys.items() if column in row}
    return name, {"type": "mindspore.Tensor", "dtype": dtype_name(dtype), "shape": lengths, **numbers}


def _number(text: str) -> int | float | bool | None:
    """Return a number of a table; texts such as "null" and "" are none.

    >>> _number("3"), _number("nan"), _number("True"), _number(""), _number("1e3")
    (3, nan, True, None, 1000.0)
    """
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    try:
        whole = int(word)
        return whole if abs(whole) < _LARGEST else math.inf if whole > 0 else -math.inf
    except ValueError:
        try:
            return float(word)
        except ValueError:
            return None
