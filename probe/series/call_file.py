# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The file of the calls of rolling records: a chunk a step, append only. A killed process loses at most the last chunk.

A chunk is its length, its CRC-32 and its content. The content is the step, and then the records of the calls of this
step. A record is the number of a head, and a float32 for each of its columns. A chunk whose step is ``HEADS`` has heads
in JSON: the number of each, the name of an entry, and its columns.
"""

from __future__ import annotations

import json
import logging
import math
import os
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from probe.door import open_file
from probe.store import file_io

_log = logging.getLogger("probe")

HEADS = 0xFFFFFFFF  # stands in place of a step
_FRAME = struct.Struct("<II")  # length and CRC-32 of the content
_STEP = struct.Struct("<I")
_MAGIC = b"probe calls 1\n"  # the first bytes of a file
_LARGEST = 3.4028235e38  # of float32
_LEAST = 0.75  # of the limit: the size after the oldest rounds were thinned


Rows = Mapping[str, Mapping[str, float]]  # entry -> column -> value


class Head(NamedTuple):
    """The columns of one entry."""

    entry: str  # "Functional.relu.0.forward"
    columns: tuple[str, ...]  # "output.0.norm", …


class CallFile:
    """Appends the records of steps. A file of another process is continued behind its last complete chunk."""

    def __init__(self, path: str, steps: int, limit: int | None = None) -> None:
        self.path = path
        self.steps = steps  # of a round
        self._limit = limit  # of bytes; then every second of the oldest rounds is left out
        self._file = -1
        self._heads: dict[Head, int] = {}
        self._size = 0

    def write(self, step: int, rows: Rows) -> None:
        """Append the records of a step, by one call of the system. OSError leaves the chunks before, complete."""
        if self._file >= 0 and not os.fstat(self._file).st_nlink:
            _log.warning("%s is gone: a new file begins with step %d", self.path, step)
            self.close()
        if self._file < 0:
            self._open()
        new: dict[int, Head] = {}
        content = [_STEP.pack(step)]
        for entry, row in rows.items():
            head = Head(entry, tuple(row))
            number = self._heads.get(head)
            if number is None:
                number = self._heads[head] = len(self._heads)
                new[number] = head
            content.append(_record(number, row.values()))
        heads = _heads_chunk(new) if new else b""
        try:
            self._append(heads + _chunk(b"".join(content)))
        except OSError:
            for head in new.values():
                del self._heads[head]
            raise
        if self._limit is not None and self._size > self._limit:
            self._thin(self._limit)

    def _open(self) -> None:
        file_io.make_dirs(os.path.dirname(self.path))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._file = os.open(self.path, flags, file_io.FILE_MODE)
        self._heads = {}
        if os.fstat(self._file).st_size:
            with open_file(self.path) as file:
                found = CallContent(file.read())
            self._heads = {head: number for number, head in found.heads.items()}
            os.ftruncate(self._file, found.end)
        self._size = os.lseek(self._file, 0, os.SEEK_END)
        if not self._size:
            self._append(_MAGIC)

    def _append(self, content: bytes) -> None:
        try:
            done = 0
            while done < len(content):
                done += os.write(self._file, content[done:])
        except OSError:
            os.ftruncate(self._file, self._size)
            os.lseek(self._file, 0, os.SEEK_END)
            raise
        self._size += len(content)

    def _thin(self, limit: int) -> None:
        """Leave out every second of the older rounds, as often as it takes, in a file that takes the place."""
        with open_file(self.path) as file:
            found = CallContent(file.read())
        chunks = found.chunks
        apart = 1
        while sum(map(len, chunks)) > _LEAST * limit and len(chunks) > 1:
            apart *= 2
            older = {
                step // self.steps for step, _ in _stepped(chunks[: len(chunks) // 2])
            }  # rounds of the older half
            kept = [
                chunk
                for step, chunk in _stepped(chunks)
                if step // self.steps not in older or (step // self.steps) % apart == 0
            ]
            chunks = kept if len(kept) < len(chunks) else chunks[len(chunks) // 2 :]
        with file_io.atomic_write(self.path, "wb") as file:
            file.write(b"".join((_MAGIC, _heads_chunk(found.heads), *chunks)))
        self.close()
        self._open()

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _record(head: int, values: Collection[float]) -> bytes:
    layout = f"<I{len(values)}f"
    try:
        return struct.pack(layout, head, *values)
    except OverflowError:  # one leaves the range of float32
        return struct.pack(layout, head, *map(_single, values))


def _single(value: float) -> float:
    return value if abs(value) < _LARGEST or math.isnan(value) else math.copysign(math.inf, value)


def _chunk(content: bytes) -> bytes:
    return _FRAME.pack(len(content), zlib.crc32(content)) + content


def _heads_chunk(heads: Mapping[int, Head]) -> bytes:
    return _chunk(
        _STEP.pack(HEADS) + json.dumps([(key, *head) for key, head in heads.items()]).encode()
    )


def _stepped(chunks: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for chunk in chunks:
        yield _STEP.unpack_from(chunk, _FRAME.size)[0], chunk


class CallContent:
    """The content of such a file, or a part behind known heads; raise ValueError when it is none."""

    def __init__(self, content: bytes, heads: Mapping[int, Head] | None = None) -> None:
        place = 0
        self.heads = dict(heads or ())
        self.chunks: list[bytes] = []  # those of the steps, as they are in the file
        if heads is None:
            if not content.startswith(_MAGIC):
                raise ValueError("no file of calls")
            place = len(_MAGIC)
        while place + _FRAME.size <= len(content):
            length, checksum = _FRAME.unpack_from(content, place)
            begin = place + _FRAME.size
            inner = content[begin : begin + length]
            if len(inner) < max(length, _STEP.size):
                break  # the last one is cut
            if zlib.crc32(inner) != checksum:
                pass  # a block of the disk is damaged
            elif _STEP.unpack_from(inner)[0] == HEADS:
                self.heads.update(
                    (number, Head(entry, tuple(columns)))
                    for number, entry, columns in json.loads(inner[_STEP.size :])
                )
            else:
                self.chunks.append(content[place : begin + length])
            place = begin + length
        self.end = place  # behind the last complete chunk

    def rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield the steps, each with series -> value."""
        for step, records in self.records():
            found: dict[str, float] = {}
            for head, values in records:
                found.update(
                    (f"{head.entry}.{column}", value)
                    for column, value in zip(head.columns, values.tolist())
                )
            yield step, found

    def records(self) -> Iterator[tuple[int, list[tuple[Head, Any]]]]:
        """Yield the steps, each with its records: a head and the values of its columns."""
        for step, chunk in _stepped(self.chunks):
            place = _FRAME.size + _STEP.size
            found = []
            while place < len(chunk):
                head = self.heads.get(_STEP.unpack_from(chunk, place)[0])
                if head is None:  # its chunk is damaged
                    break
                values = np.frombuffer(chunk, "<f4", len(head.columns), place + _STEP.size)
                found.append((head, values))
                place += _STEP.size + values.nbytes
            yield step, found

    def tables(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield for each head its columns, of which the first is the step, and its rows."""
        by_head: dict[Head, list[Any]] = {}
        for step, records in self.records():
            for head, values in records:
                by_head.setdefault(head, []).append(np.concatenate(([step], values)))
        for head, rows in by_head.items():
            names = ("step", *(f"{head.entry}.{column}" for column in head.columns))
            yield names, np.array(rows, np.float32)
