# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files that the user asks for, with a dump's permissions; and rows for them: csv, columns, pandas, polars, xlsx."""

from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, TextIO, TypeVar

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.dumps import entry_name
from probe.reading.dumps.text import csv_text
from probe.reading.dumps.values import SHOWN
from probe.store.file_io import FILE_MODE, why_unwritable
from probe.store.file_names import TEMP_SUFFIX

if TYPE_CHECKING:
    from probe.reading.dumps.dump import Dump

#: options that name a file to be written, and those that name a folder
_FILES = ("csv", "json", "jsonl", "xlsx", "msprobe_csv", "output", "script")
_FOLDERS = ("msprobe_csv", "tensorboard")
Item = TypeVar("Item")
Row = dict[str, Any]
COLUMNS = ("step", "rank", "cell", "call", "place", "dtype", "shape", *SHOWN, "md5", "array")
_SHEET_ROWS = 1_048_500


def create(path: str | os.PathLike[str], newline: str | None = None) -> TextIO:
    """Open a text file to write it. A new one is readable for owner and group only. Raise OSError if it cannot be."""
    opener = functools.partial(os.open, mode=FILE_MODE)
    return open(
        path, "w", encoding="utf-8", errors="backslashreplace", newline=newline, opener=opener
    )


@contextlib.contextmanager
def create_whole(path: str | os.PathLike[str], newline: str | None = None) -> Iterator[TextIO]:
    """Open a text file that appears when it is complete. A device or a pipe is written as it is, and never replaced."""
    if os.path.exists(path) and not os.path.isfile(path):
        with create(path, newline) as file:
            yield file
        return
    beside = f"{os.fspath(path)}.{os.getpid()}{TEMP_SUFFIX}"
    try:
        with create(beside, newline) as file:
            yield file
        os.replace(beside, path)
    finally:
        with contextlib.suppress(OSError):  # after the renaming there is none
            os.remove(beside)


@contextlib.contextmanager
def table_file(path: str) -> Iterator[IO[str]]:
    """Open the file of a table that appears when it is complete; "-" is standard output. Raise OSError."""
    if path == "-":
        yield sys.stdout
        return
    with create_whole(path, "") as file:
        yield file


def why_no_output(given: argparse.Namespace) -> Sentence:
    """Return why an output that is asked for cannot be written, as far as that is known before; else NOTHING."""
    folders = _FOLDERS if given.command == "watch" else ()
    for option in dict.fromkeys((*_FILES, *folders)):
        path = getattr(given, option, None)
        if type(path) is not str or path in ("", "-"):
            continue
        why: Callable[[str], Sentence] = why_unwritable if option in folders else _why_no_file
        reason = say("error.no_name") if "\0" in path else why(os.path.abspath(path))
        if reason:
            return say(
                "error.output", option=f"--{option.replace('_', '-')}", path=path, reason=reason
            )
    return NOTHING


def _why_no_file(path: str) -> Sentence:
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        return say("error.is_folder")
    if os.path.exists(path):
        return NOTHING if os.access(path, os.W_OK) else say("error.not_writable")
    return (
        why_unwritable(folder)
        if os.path.isdir(folder)
        else say("error.no_folder_for", folder=folder)
    )


class Table:
    """Rows that are made while they are iterated, as often as that is done."""

    def __init__(self, rows: Callable[[], Iterator[Row]], columns: Sequence[str] = COLUMNS) -> None:
        self._rows = rows
        self.columns = tuple(columns)

    def __iter__(self) -> Iterator[Row]:
        return self._rows()

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows as csv."""
        with create(path, "") as file:
            write_csv(file, self.columns, (row.values() for row in self))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns."""
        found: dict[str, list[Any]] = {name: [] for name in self.columns}
        lists = list(found.values())
        for row in self:
            for column, value in zip(lists, row.values()):
                column.append(value)
        return found

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame; raise UsageError when pandas is not installed."""
        return extra("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """Return a polars.DataFrame; raise UsageError when polars is not installed."""
        return extra("polars").DataFrame(self.to_dict(), strict=False)


def extra(module: str, package: str = "") -> Any:
    """Import a package that probe does not need itself; raise UsageError, which says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = package or module
        raise UsageError(say("error.extra", name=name)) from error


def tensor_rows(dump: Dump) -> Iterator[Row]:
    """Yield a row for each tensor of a dump, with the keys of ``COLUMNS``."""
    construct = dump.construct
    for call in dump:
        cell = entry_name.cell_label(construct.get(call.name))
        for tensor in call.tensors():
            record = tensor.record
            shape = record.get("shape")
            yield {
                "step": dump.step,
                "rank": dump.rank,
                "cell": cell,
                "call": call.name,
                "place": tensor.place,
                "dtype": record.get("dtype"),
                "shape": "x".join(map(str, shape)) if isinstance(shape, list) else None,
                **{key: record.get(key) for key in SHOWN},
                "md5": record.get("md5"),
                "array": record.get("data_name"),
            }


def write_csv(file: IO[str], header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows as csv; no text of a dump becomes a formula or a control character."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return csv_text(value)
    if kind is float or kind is int or value is None or kind is bool:
        return value
    return csv_text(str(value))


def write_xlsx(
    path: str | os.PathLike[str], sheets: dict[str, tuple[Sequence[str], Iterable[Iterable[Any]]]]
) -> None:
    """Write sheets of rows, too many in a further one; raise UsageError when XlsxWriter is not installed."""
    xlsxwriter = extra("xlsxwriter", "XlsxWriter")
    options = {
        "constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True,
    }  # fmt: skip
    create(path).close()  # the workbook keeps its permissions
    with xlsxwriter.Workbook(os.fspath(path), options) as book:
        for name, (header, rows) in sheets.items():
            sheet = book.add_worksheet(name)
            place = 0
            number = 1
            sheet.write_row(0, 0, list(header))
            for row in rows:
                place += 1
                if place > _SHEET_ROWS:
                    number = number + 1
                    place = 1
                    sheet = book.add_worksheet(f"{name} {number}")
                    sheet.write_row(0, 0, list(header))
                sheet.write_row(place, 0, [_cell(value) for value in row])
