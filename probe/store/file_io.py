# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes folders and writes files: readable for owner and group only, and never through a symbolic link."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import IO, Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.store.file_names import TEMP_SUFFIX

_FOLDER_MODE = 0o750
FILE_MODE = 0o640


def make_dirs(folder: str) -> str:
    """Create a folder and those above it, readable for owner and group only, and return it.

    Raise OSError when it cannot be made. It or the one above it may be no symbolic link, which may lead anywhere.
    """
    above = os.path.dirname(folder)
    for path in (above, folder):
        if os.path.islink(path):
            raise OSError(errno.ELOOP, "a symbolic link is in the way", path)
    if above and not os.path.isdir(above):
        make_dirs(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, _FOLDER_MODE)
    return folder


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, FILE_MODE)


def append(path: str, text: str) -> None:
    """Append a text to a file, creating it where needed."""
    with open(path, "a", encoding="utf-8", opener=_opener) as file:
        file.write(text)


def write(path: str, *parts: bytes | memoryview) -> os.stat_result:
    """Write a new file in place of an older one, and return its state. A file that cannot be completed is removed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        file = os.open(path, flags, FILE_MODE)
    except FileNotFoundError:  # somebody has removed the folder
        make_dirs(os.path.dirname(path))
        file = os.open(path, flags, FILE_MODE)
    except FileExistsError:
        if os.path.islink(path):
            raise OSError(errno.ELOOP, "a symbolic link is in the way", path) from None
        os.remove(path)  # never truncated: it may have other names
        file = os.open(path, flags, FILE_MODE)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(file, rest) :]
        return os.fstat(file)
    except OSError:
        os.remove(path)
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def atomic_write(path: str, mode: str = "w") -> Iterator[IO[Any]]:
    """Write a file beside its place, then rename it: a reader sees the old or the new file, never half of one."""
    beside = f"{path}.{os.getpid()}{TEMP_SUFFIX}"
    try:
        encoding = None if "b" in mode else "utf-8"
        with open(beside, mode, encoding=encoding, opener=_opener) as file:
            yield file
        os.replace(beside, path)
    finally:
        with contextlib.suppress(OSError):  # after the renaming there is none
            os.remove(beside)


def why_unwritable(folder: str) -> Sentence:
    """Return why a folder cannot be made or written, or NOTHING."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        return say("store.no_folder", folder=folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        return say("store.unwritable", folder=folder)
    if not os.statvfs(folder).f_blocks:  # as /proc, which says that it is writable
        beside = os.path.join(folder, f"{os.getpid()}{TEMP_SUFFIX}")
        try:
            os.mkdir(beside)
        except OSError as error:
            return say("store.no_files", folder=folder, reason=reason_of(error))
        os.rmdir(beside)
    return NOTHING
