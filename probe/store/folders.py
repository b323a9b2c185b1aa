# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Folders and files of a dump: where they are, that two runs never share one, and how a file is put in place."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Iterator
from typing import IO

from probe.errors import UsageError

DUMP, STACK, CONSTRUCT, ERRORS = "dump.json", "stack.json", "construct.json", "dump_error_info.log"
ARRAYS, MAPPING = "dump_tensor_data", "mapping.csv"
_OURS = (DUMP, STACK, CONSTRUCT, ERRORS, ARRAYS)

_FOLDER_MODE, _FILE_MODE = 0o750, 0o640


def rank_folder(dump_path: str, step: int | str, rank: int | None) -> str:
    """Return the folder of one step and rank; without a rank it is called ``rank``.

    >>> rank_folder("/d", 3, None)
    '/d/step3/rank'
    """
    return os.path.join(dump_path, f"step{step}", "rank" if rank is None else f"rank{rank}")


def make(folder: str) -> str:
    """Create a folder and those above it, readable for owner and group only, and return it."""
    above = os.path.dirname(folder)
    if above and not os.path.isdir(above):
        make(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, _FOLDER_MODE)
    return folder


def claim(dump_path: str, rank: int | None, overwrite: bool) -> None:
    """Make sure that no other run's dump of this rank is below ``dump_path``.

    Raises:
        UsageError: when there is one and ``overwrite`` does not allow to replace it.
    """
    pattern = rank_folder(glob.escape(os.path.abspath(dump_path)), "*", rank)
    for folder in sorted(glob.glob(pattern)):
        found = [name for name in _OURS if os.path.lexists(os.path.join(folder, name))]
        if not found:
            continue
        if not overwrite:
            raise UsageError(
                f"{folder} holds the dump of another run. Choose another dump_path, remove the folder, "
                'or set "overwrite": true to replace it.'
            )
        for name in found:
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE_MODE)


def append(path: str, text: str) -> None:
    """Append a text to a file, creating it where needed."""
    with open(path, "a", encoding="utf-8", opener=_opener) as file:
        file.write(text)


def write(path: str, *parts: bytes | memoryview) -> None:
    """Write a new file, replacing what stood there; one that cannot be written to its end is removed."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(file, rest) :]
    except OSError:
        os.remove(path)
        raise
    finally:
        os.close(file)


@contextlib.contextmanager
def in_place(path: str) -> Iterator[IO[str]]:
    """Write a file beside its place and rename it over it: a reader sees the old or the new one, never half of it."""
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8", opener=_opener) as file:
            yield file
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise
