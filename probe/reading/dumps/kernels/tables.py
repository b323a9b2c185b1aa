# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The tables in a folder of kernels: statistic.csv and mapping.csv."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator

from probe.findings.sentence import Sentence, say
from probe.reading.dumps.kernels.names import COLUMNS, HEAD, MAPPING, STATISTICS, ArrayName, dtype_name, parse
from probe.reading.dumps.values import Record


def read_mapping(folder: str) -> dict[str, str]:
    """Return the names that were too long for a file, by the file's name."""
    try:
        with open(os.path.join(folder, MAPPING), encoding="utf-8", errors="replace", newline="") as file:
            rows = [row for row in csv.reader(file) if len(row) == 2]
    except FileNotFoundError:
        return {}
    # MindSpore writes the file's name first; other writers of this layout write it last
    return {**{last: first for first, last in rows if parse(first)}, **dict(rows)}


def read_statistics(folder: str, notes: list[Sentence]) -> Iterator[tuple[ArrayName, Record]]:
    """Yield the rows of statistic.csv, if the folder has one; notes get a remark for each line that is cut or wrong."""
    path = os.path.join(folder, STATISTICS)
    keys = {column: key for column, key in COLUMNS.values() if key}
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                try:
                    yield _row(row, keys)
                except (KeyError, TypeError, ValueError, AttributeError):  # noqa: PERF203 - one broken item does not hide the others
                    notes.append(say("dump.line_cut", path=path, line=number))
    except FileNotFoundError:
        return


def _row(row: dict[str, str], keys: dict[str, str]) -> tuple[ArrayName, Record]:
    op_type, op_name, task, stream, timestamp, side, slot, _, dtype, shape = (row[name] for name in HEAD)
    name = ArrayName(op_type, op_name, int(task), int(stream), int(timestamp), side, int(slot), "", dtype)
    if side not in ("input", "output"):
        raise ValueError(side)
    lengths = [int(part) for part in shape.strip("()[] ").replace("x", ",").split(",") if part.strip()]
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
        return int(word)
    except ValueError:
        try:
            return float(word)
        except ValueError:
            return None
