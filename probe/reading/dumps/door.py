# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The door for files from outside: opens regular files alone, and checks the shape of documents once.

Behind it every reader may trust the types that ``shapes`` describes. A field of another type is left out, and named in
one line. ``npy`` is the door of arrays.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Any, BinaryIO, TextIO

from probe.findings.sentence import say
from probe.reading.dumps.shapes import HEADER, RECORD, number, wrong_fields
from probe.reading.dumps.values import MAX_DEPTH, TENSORS

#: kinds of files that are no regular files
_KINDS = (
    (stat.S_ISFIFO, "a FIFO"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a folder"),
)  # fmt: skip
#: lines about one file; further ones are counted
_MOST_LINES = 5


def open_file(path: str, writable: bool = False) -> BinaryIO:
    """Open a regular file. It never waits, as for the writer of a FIFO.

    Args:
        path: the file.
        writable: whether it is opened for writing too, if that is allowed: some file systems lock such files only.

    Raises:
        OSError: when there is none, it cannot be read, or it is no regular file.
    """
    flags = os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = _opened(path, flags, writable)
    except FileNotFoundError:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, "it is a link that leads nowhere", path) from None
        raise
    except ValueError:  # a null character
        raise OSError(errno.EINVAL, "its name cannot be that of a file", path) from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, and no regular file", path)
    return os.fdopen(handle, "rb")


def _opened(path: str, flags: int, writable: bool) -> int:
    if writable:
        try:
            return os.open(path, flags | os.O_RDWR)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EROFS, errno.EPERM, errno.EISDIR):
                raise
    return os.open(path, flags | os.O_RDONLY)


def open_text(path: str, errors: str = "strict", newline: str | None = None) -> TextIO:
    """Open a regular file of UTF-8, with or without its mark.

    Raises:
        OSError: see ``open_file``.
    """
    return io.TextIOWrapper(open_file(path), "utf-8-sig", errors, newline)


class Sieve:
    """Sieves the entries and the header of one document.

    Args:
        file: its path, for the lines.

    Attributes:
        lines: what was left out.
    """

    def __init__(self, file: str) -> None:
        self._file, self._more = file, 0
        self.lines: list[str] = []

    def note(self, key: str, **facts: Any) -> None:
        """Note one thing that is left out."""
        if len(self.lines) == _MOST_LINES:
            self._more += 1
        else:
            self.lines.append(str(say(key, file=self._file, **facts)))

    def told(self) -> list[str]:
        """Return the lines; the last one counts those that are not shown."""
        more = [str(say("door.more", file=self._file, count=self._more))] if self._more else []
        return [*self.lines, *more]

    def header(self, header: dict[str, Any]) -> dict[str, Any]:
        """Return a header without fields of wrong types."""
        wrong = wrong_fields(header, HEADER)
        for name, found in wrong:
            self.note("door.field", name=name, found=found)
        names = {name for name, _ in wrong}
        return {name: value for name, value in header.items() if name not in names} if wrong else header

    def entries(self, data: dict[str, Any]) -> None:
        """Remove fields of wrong types from the records of tensors in entries."""
        for name, entry in list(data.items()):
            data[name] = self._part(name, entry, "", MAX_DEPTH)

    def _part(self, name: str, value: Any, key: str, depth: int) -> Any:
        if type(value) is list:
            return [self._part(name, item, key, depth - 1) for item in value] if depth else None
        if type(value) is not dict:
            return value
        kind = value.get("type")
        if type(kind) is str and type(value.get("value")) is int and number(value["value"]):
            return {**value, "value": str(value["value"])}  # no float holds it; equal texts are equal numbers
        if type(kind) is str and kind in TENSORS:
            wrong = wrong_fields(value, RECORD)
            for field, found in wrong:
                self.note("door.entry", name=name, field=field, found=found)
            return {**value, **{field: None for field, _ in wrong}} if wrong else value
        return {inner: self._part(name, item, inner, depth - 1) for inner, item in value.items()} if depth else None
