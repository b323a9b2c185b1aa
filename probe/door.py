# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The door for files from outside: regular files alone, and without waiting, as a FIFO or a device never ends.

``reading.dumps.document`` checks the shape of documents behind it, ``reading.dumps.load`` that of arrays.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import pkgutil
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TextIO

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import foreign

#: kinds of files that are no regular files, with their sentences
_KINDS = (
    (stat.S_ISFIFO, "door.fifo"),
    (stat.S_ISCHR, "door.device"),
    (stat.S_ISBLK, "door.device"),
    (stat.S_ISSOCK, "door.socket"),
    (stat.S_ISDIR, "door.folder"),
)


def open_file(path: str, writable: bool = False) -> BinaryIO:
    """Open a regular file of bytes. It never waits, as for the writer of a FIFO.

    If ``writable``, it is opened for writing too where that is allowed: some file systems lock such files only. Raise
    OSError when there is none, it cannot be read, or it is no regular file.
    """
    flags = os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = _opened(path, flags, writable)
    except FileNotFoundError:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, say("door.dead_link"), path) from None
        raise
    except ValueError:  # a null character
        raise OSError(errno.EINVAL, say("error.no_name"), path) from None
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        key = next((key for is_kind, key in _KINDS if is_kind(mode)), "door.other_kind")
        raise OSError(errno.EINVAL, say(key), path)
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
    """Open a regular file of UTF-8, with or without its mark; raise OSError as ``open_file``."""
    return io.TextIOWrapper(open_file(path), "utf-8-sig", errors, newline)


def table_lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a table for ``csv``, which refuses a NUL before Python 3.11."""
    return (line.replace("\0", "\ufffd") for line in file)


@functools.lru_cache(64)
def function_of(text: str) -> Callable[..., Any]:
    """Return a function of the user's, by "module:function"; raise UsageError when there is none."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return pkgutil.resolve_name(text)  # type: ignore[no-any-return]  # the user's
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise UsageError(
            say("error.function", text=text, kind=type(error).__name__, reason=foreign(str(error)))
        ) from error
