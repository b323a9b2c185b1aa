# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The names of files in MindSpore's kernel dump, and its tables: statistic.csv and mapping.csv."""

from __future__ import annotations

import contextlib
import csv
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from probe.door import open_text, table_lines
from probe.findings.sentence import Sentence, say
from probe.findings.system import reason_of
from probe.reading.dumps.shapes import lengths as wrong_lengths
from probe.reading.dumps.values import Record, dtype_name
from probe.store import file_names

STATISTICS = "statistic.csv"
MAPPING = "mapping.csv"
#: the file of ours beside a rank's dump: the settings, and the Cells of the model
RUN = file_names.KERNEL_RUN
PARAMETER = "Parameter"

#: columns of statistic.csv before the statistics
HEAD = (
    "Op Type",
    "Op Name",
    "Task ID",
    "Stream ID",
    "Timestamp",
    "IO",
    "Slot",
    "Data Size",
    "Data Type",
    "Shape",
)
#: name of a statistic in the settings -> its column, and its key in a record; "" where a record has none
COLUMNS = {
    "max": ("Max Value", "Max"), "min": ("Min Value", "Min"), "avg": ("Avg Value", "Mean"),
    "l2norm": ("L2Norm Value", "Norm"), "count": ("Count", "count"),
    "negative zero count": ("Negative Zero Count", "negative_zero_count"),
    "positive zero count": ("Positive Zero Count", "positive_zero_count"), "nan count": ("NaN Count", "nan_count"),
    "negative inf count": ("Negative Inf Count", "negative_inf_count"),
    "positive inf count": ("Positive Inf Count", "positive_inf_count"), "zero count": ("Zero Count", "zero_count"),
    "md5": ("MD5", ""), "sha1": ("SHA1", ""),
}  # fmt: skip

_ARRAY = re.compile(
    r"(?P<op_type>[^.]+)\.(?P<op_name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<timestamp>\d+)"
    r"\.(?P<io>input|output)\.(?P<slot>\d{1,4})\.(?P<format>[^.]+)(?:\.(?P<dtype>\w+))?\.npy"
)
#: above the number of inputs or outputs of any kernel, as in names of files
_SLOTS = 10_000
#: no float holds this number
_LARGEST = 1 << 1023


class ArrayName(NamedTuple):
    """The parts of the name of an array's file."""

    op_type: str  # the type of the kernel: "Conv2D"
    op_name: str  # its name: "Conv2D-op12", with its scope for whole graphs on Ascend
    task: int  # the task id
    stream: int  # the stream id
    timestamp: int  # when it was written, in microseconds
    io: str  # "input" or "output"
    slot: int  # which input or output
    format: str  # the data format: "DefaultFormat", "NCHW"
    dtype: str  # the dtype of the tensor, where the name has it, else ""

    @property
    def key(self) -> tuple[str, str, int, int, int, str, int]:
        """The parts that a row of statistic.csv has too."""
        return self[:7]

    @property
    def is_parameter(self) -> bool:
        """Whether this is a parameter or a constant instead of an input or output of a kernel."""
        return self.op_type == PARAMETER


def parse(name: str) -> ArrayName | None:
    """Take the name of an array's file apart; None where it is no such name.

    >>> parse("Conv2D.Conv2D-op12.0.7.1623124369613540.output.0.NCHW.float16.npy")[:5]
    ('Conv2D', 'Conv2D-op12', 0, 7, 1623124369613540)
    >>> parse("Parameter.fc.weight.0.0.1623124369613540.output.0.DefaultFormat.npy").op_name
    'fc.weight'
    >>> parse("Functional.relu.0.forward.output.0.npy") is None
    True
    """
    match = _ARRAY.fullmatch(name)
    if match is None:
        return None
    return ArrayName(
        match["op_type"],
        match["op_name"],
        int(match["task"]),
        int(match["stream"]),
        int(match["timestamp"]),
        match["io"],
        int(match["slot"]),
        match["format"],
        match["dtype"] or "",
    )


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


def _rows(
    path: str, reader: Callable[[Iterator[str]], Iterable[Any]], notes: list[Sentence]
) -> Iterator[Any]:
    """Yield the rows of a table, if it is there; ``notes`` gets a remark where it cannot be read."""
    try:
        with open_text(path, "replace", "") as file:
            yield from reader(table_lines(file))
    except FileNotFoundError:
        return
    except (OSError, csv.Error) as error:
        notes.append(say("dump.unreadable", path=path, error=reason_of(error)))


def _row(row: dict[str, str], keys: dict[str, str]) -> tuple[ArrayName, Record]:
    row.setdefault("IO", row.get("Input/Output", ""))  # its older name
    op_type, op_name, task, stream, timestamp, side, slot, _, dtype, shape = (
        row[name] for name in HEAD
    )
    name = ArrayName(
        op_type, op_name, int(task), int(stream), int(timestamp), side, int(slot), "", dtype
    )
    if side not in ("input", "output") or not 0 <= name.slot < _SLOTS:
        raise ValueError(side)
    lengths = [
        int(part) for part in shape.strip("()[] ").replace("x", ",").split(",") if part.strip()
    ]
    if wrong := wrong_lengths(lengths):
        raise ValueError(wrong)
    numbers = {key: _number(row[column]) for column, key in keys.items() if column in row}
    return name, {
        "type": "mindspore.Tensor",
        "dtype": dtype_name(dtype),
        "shape": lengths,
        **numbers,
    }


def _number(text: str) -> int | float | bool | None:
    """Return a number of a table; texts such as "null" and "" are none.

    >>> _number("3"), _number("nan"), _number("True"), _number(""), _number("1e3")
    (3, nan, True, None, 1000.0)
    """
    word = text.strip().lower()
    if word in ("true", "false"):
        return word == "true"
    with contextlib.suppress(ValueError):
        whole = int(word)
        return whole if abs(whole) < _LARGEST else math.inf if whole > 0 else -math.inf
    with contextlib.suppress(ValueError):
        return float(word)
    return None
