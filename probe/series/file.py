# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The file of the monitor: sections of rows, append only. A killed process loses at most the last row.

A section begins with one line of JSON, whose "names" are the columns. Rows of little-endian float32 follow, one a step.
The first column is the step. A new column begins a new section. The first four bytes of a section are no step, so a
reader knows where the rows end.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.series.call_file import CallContent, Head
from probe.store import file_io, file_names
from probe.store.file_names import Rank

_log = logging.getLogger("probe")

MARK = b'{"probe series": '  # the first bytes of a section
_VERSION = 1
NOT_MEASURED_BITS = 0x7FC00001  # stands where a series was not measured: a NaN of these bits, which no operation makes
_EMPTY = array("f", NOT_MEASURED_BITS.to_bytes(4, "little"))
MOST_STEP = 1e15  # above every step


class Section(NamedTuple):
    """One section of a file."""

    names: tuple[str, ...]  # the columns; the first is "step"
    start: int  # the place of its first row
    rows: int  # the number of its complete rows

    @property
    def end(self) -> int:
        """The place behind its last complete row."""
        return self.start + 4 * len(self.names) * self.rows


def sections(content: bytes) -> Iterator[Section]:
    """Yield the sections of a file; raise ValueError when the content is no such file."""
    place = 0
    while place < len(content):
        start = content.find(b"\n", place) + 1
        if not start:
            return  # its line is cut
        if not content.startswith(MARK, place):
            raise ValueError(say("door.no_section", place=place))
        names = _names(content[place : start - 1])
        size = 4 * len(names)
        end = content.find(MARK, start)
        while end >= 0 and (end - start) % size:  # these bytes stand in numbers of a row
            end = content.find(MARK, end + 1)
        place = end if end >= 0 else len(content)
        yield Section(names, start, (place - start) // size)


def _line(names: Iterable[str]) -> bytes:
    return MARK + f'{_VERSION}, "names": {json.dumps(list(names))}}}\n'.encode()


def _names(line: bytes) -> tuple[str, ...]:
    """Return the columns that the line of a section names; raise ValueError when it names none."""
    try:
        names = json.loads(line)["names"]
    except (ValueError, KeyError, RecursionError):
        names = None
    if type(names) is not list or not names or any(type(name) is not str for name in names):
        raise ValueError(say("door.no_columns"))
    return tuple(names)


class SeriesFile:
    """Appends rows; the first makes the file. A file of another process is continued behind its last complete row."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = -1
        self.count = 0
        self._places = {"step": 0}  # name -> column

    @property
    def path(self) -> str:
        """The path of the file."""
        return os.path.join(self._folder, file_names.SERIES)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append the row of a step, missing values as not measured. OSError leaves the rows before, complete."""
        if self._file >= 0 and not os.fstat(self._file).st_nlink:
            _log.warning("%s is gone: a new file begins with step %d", self.path, step)
            self.close()
            self._places = {"step": 0}
        if self._file < 0:
            self._open()
        places = self._places
        head = b""
        new = [name for name in values if name not in places]
        if new or len(places) == 1:
            places.update(zip(new, range(len(places), len(places) + len(new))))
            head = _line(places)
        cells = _EMPTY * len(
            places
        )  # numpy is slower where its code is not in the processor's cache
        cells[0] = step
        for name, value in values.items():
            cells[places[name]] = value
        self._append(head + cells.tobytes())
        self.count += 1

    def _open(self) -> None:
        file_io.make_dirs(self._folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._file = os.open(self.path, flags, file_io.FILE_MODE)
        size = os.fstat(self._file).st_size
        if size:
            with open_file(self.path) as file:
                ends = [section.end for section in sections(file.read())]
            os.ftruncate(self._file, ends[-1] if ends else 0)
        os.lseek(self._file, 0, os.SEEK_END)

    def _append(self, content: bytes) -> None:
        written = 0
        try:
            written = os.write(self._file, content)
            if written < len(content):
                os.write(self._file, content[written:])
        except OSError:
            os.ftruncate(self._file, os.lseek(self._file, -written, os.SEEK_CUR))
            self._places = {"step": 0}  # the next row begins a section
            raise

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def table(content: bytes, section: Section) -> Any:
    """Return the rows of a section, without those whose step is none: a block of a disk may be damaged."""
    count = len(section.names)
    rows = np.frombuffer(content, "<f4", section.rows * count, section.start).reshape(
        section.rows, count
    )
    is_right = (rows[:, 0] >= 0) & (rows[:, 0] < MOST_STEP)  # NaN is in no such range
    return rows if is_right.all() else rows[is_right]


def last_step(path: str) -> int:
    """Return the highest step of a file; -1 if it has none, or cannot be read."""
    try:
        with open_file(path) as file:
            content = file.read()
        found = [table(content, section)[:, 0] for section in sections(content)]
    except (OSError, ValueError):
        return -1
    return max((int(steps.max(initial=-1)) for steps in found), default=-1)


class CallTail:
    """Follows the file of calls beside that of the monitor, which has the row of each step a moment later."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._place = self._number = 0
        self._heads: dict[int, Head] = {}
        self._last = -1  # the last step that was read
        self._waiting: list[tuple[int, dict[str, float]]] = []  # rows before those of their steps

    def skip(self, calls: CallContent) -> None:
        """Begin behind the calls that were read."""
        self._place = calls.end
        self._heads = calls.heads
        self._number = os.stat(self._path).st_ino
        self._last = max((step for step, _ in calls.records()), default=-1)

    def merged(
        self, rows: list[tuple[int, dict[str, float]]]
    ) -> list[tuple[int, dict[str, float]]]:
        """Return rows of the monitor with the numbers of the calls of their steps."""
        if rows and os.path.isfile(self._path):
            self._waiting += self._new_rows()
            of_calls = dict(self._waiting)
            for step, values in rows:
                values.update(of_calls.get(step, {}))
            self._waiting = [row for row in self._waiting if row[0] > rows[-1][0]]
        return rows

    def _new_rows(self) -> list[tuple[int, dict[str, float]]]:
        with open_file(self._path) as file:
            number = os.fstat(file.fileno()).st_ino
            if number != self._number:  # a file whose oldest rounds were thinned takes the place
                self._place = 0
                self._number = number
            file.seek(self._place)
            calls = CallContent(file.read(), self._heads if self._place else None)
        self._place += calls.end
        self._heads = calls.heads
        found = [(step, values) for step, values in calls.rows() if step > self._last]
        self._last = max((step for step, _ in found), default=self._last)
        return found


class SeriesTail:
    """Follows a file that another process writes: each call returns the rows that came since the last."""

    def __init__(
        self, path: str, place: int = 0, names: tuple[str, ...] = (), number: int = 0
    ) -> None:
        #: where the first new row begins, the columns there, and the file's number in its file system, or 0
        self._path = path
        self._place = place
        self._names = names
        self._number = number
        self.calls = CallTail(os.path.join(os.path.dirname(path), file_names.CALLS))
        self.is_restarted = (
            False  # whether the last call began at the start, as the file was replaced or cut
        )

    def new_rows(self) -> list[tuple[int, dict[str, float]]]:
        """Return the new rows: step, and name -> value; raise OSError or ValueError when it cannot be read."""
        with open_file(self._path) as file:
            now = os.fstat(file.fileno())
            self.is_restarted = now.st_size < self._place or self._number not in (0, now.st_ino)
            if self.is_restarted:
                self._place = 0
                self._names = ()
            self._number = now.st_ino
            file.seek(self._place)
            head = _line(self._names) if self._names else b""
            content = head + file.read()
        found: list[tuple[int, dict[str, float]]] = []
        end = len(head)
        for section in sections(content):
            self._names = section.names
            end = section.end
            found += _rows(section.names, table(content, section))
        self._place += end - len(head)
        return self.calls.merged(found)


def _rows(names: tuple[str, ...], rows: Any) -> Iterator[tuple[int, dict[str, float]]]:
    bits = np.ascontiguousarray(rows).view("<u4")
    for row, known in zip(rows, bits != NOT_MEASURED_BITS):
        yield (
            int(row[0]),
            {names[place]: float(row[place]) for place in range(1, len(names)) if known[place]},
        )


def read_calls(path: str) -> CallContent | None:
    """Return the calls of rolling records beside a file of the monitor; None where there are none."""
    beside = os.path.join(os.path.dirname(path), file_names.CALLS)
    if not os.path.isfile(beside):
        return None
    with open_file(beside) as file:
        return CallContent(file.read())


class Series(NamedTuple):
    """One series of one rank."""

    steps: Any  # the steps in which it was measured
    values: Any


class RankSeries:
    """The series of one rank, which is None without communication. Raise UsageError when the file cannot be read."""

    def __init__(self, path: str, rank: Rank) -> None:
        self.path = path
        self.rank = rank
        self._tables: list[tuple[tuple[str, ...], Any]] = []
        self.calls: CallContent | None = None  # those of rolling records; None where there are none
        self._end = self._number = 0
        self._read()

    def _read(self) -> None:
        try:
            with open_file(self.path) as file:
                content = file.read()
                self._number = os.fstat(file.fileno()).st_ino
            found = list(sections(content))
            self.calls = read_calls(self.path)
        except (OSError, ValueError) as error:
            raise UsageError(
                say("error.unreadable", path=self.path, reason=reason_of(error))
            ) from None
        self._tables = [(section.names, table(content, section)) for section in found]
        self._end = found[-1].end if found else 0

    @functools.cached_property
    def _by_name(self) -> dict[str, list[tuple[int, Any]]]:
        """The places of each series: the column, and the rows."""
        found: dict[str, list[tuple[int, Any]]] = {}
        of_calls = [] if self.calls is None else list(self.calls.tables())
        for names, rows in [*reversed(self._tables), *of_calls]:
            for column, name in enumerate(names[1:], 1):
                found.setdefault(name, []).insert(0, (column, rows))
        return found

    @property
    def names(self) -> list[str]:
        """The names of the series, in the order of the newest section; those of calls come last."""
        return list(self._by_name)

    @property
    def steps(self) -> list[int]:
        """The steps that have a row."""
        return sorted({int(step) for _, rows in self._tables for step in rows[:, 0]})

    def __getitem__(self, name: str) -> Series:
        """Return one series. Of several rows of one step, as after a restart, the last counts."""
        found: dict[int, float] = {}
        for place, rows in self._by_name.get(name, ()):
            column = rows[:, place]
            measured = np.ascontiguousarray(column).view("<u4") != NOT_MEASURED_BITS
            found.update(zip(rows[measured, 0].astype(int).tolist(), column[measured].tolist()))
        steps = sorted(found)
        return Series(np.array(steps), np.array([found[step] for step in steps], np.float32))

    def rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (step, name -> value) in the order of the file."""
        of_calls = iter(()) if self.calls is None else self.calls.rows()
        step, values = next(of_calls, (-1, {}))
        for names, rows in self._tables:
            for own_step, own in _rows(names, rows):
                while 0 <= step < own_step:  # its row is damaged
                    yield step, values
                    step, values = next(of_calls, (-1, {}))
                if step == own_step:
                    own.update(values)
                    step, values = next(of_calls, (-1, {}))
                yield own_step, own

    def tail(self) -> SeriesTail:
        """Return the rows that come behind those that were read."""
        tail = SeriesTail(
            self.path, self._end, self._tables[-1][0] if self._tables else (), self._number
        )
        if self.calls is not None:
            tail.calls.skip(self.calls)
        return tail
