# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Files that the user asks for: reports and tables. They hold values of a dump, and get its permissions."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import TextIO

from probe.store.file_io import FILE_MODE, why_unwritable
from probe.store.file_names import TEMP_SUFFIX

#: options that name a file to be written, and those that name a folder
_FILES, _FOLDERS = ("csv", "json", "jsonl", "xlsx", "msprobe_csv", "output", "script"), ("msprobe_csv", "tensorboard")


def create(path: str | os.PathLike[str], newline: str | None = None) -> TextIO:
    """Open a text file to write it. A new one is readable for owner and group only. Raise OSError if it cannot be."""
    return open(path, "w", encoding="utf-8", errors="backslashreplace", newline=newline, opener=_opener)


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


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)


def why_no_output(given: argparse.Namespace) -> str:
    """Return why an output that the user asks for cannot be written, as far as that can be known before; else ""."""
    are_folders = given.command == "watch"
    for option in _FOLDERS if are_folders else _FILES:
        path = getattr(given, option, None)
        if type(path) is not str or path in ("", "-"):
            continue
        why = why_unwritable if are_folders else _why_no_file
        reason = "its name cannot be that of a file" if "\0" in path else why(os.path.abspath(path))
        if reason:
            return f"--{option.replace('_', '-')}: {path} cannot be written: {reason}"
    return ""


def _why_no_file(path: str) -> str:
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        return "it is a folder"
    if os.path.exists(path):
        return "" if os.access(path, os.W_OK) else "it is not writable"
    return why_unwritable(folder) if os.path.isdir(folder) else f"there is no folder {folder}"
