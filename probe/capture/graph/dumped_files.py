# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The files that ops.TensorDump writes: their names, the wait for them, and the events that they stand for.

A path that a graph has is ``{key}.{kind}.{plan}.{number}``. MindSpore appends ``_{dtype}_{id}.npy``. The id counts all
files of the process in the order of their arrival.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from probe.measure.tensor_reader import Array

#: kinds of files: inputs of a call; its outputs and parameters; gradients that enter an optimizer
ENTER = "enter"
LEAVE = "leave"
UPDATE = "update"
OF_INPUT, OF_OUTPUT = GRADIENTS = (
    "input_grad",
    "output_grad",
)  # gradients of inputs and of outputs
MARKER = 9999  # the number of a file that stands for a call without tensors
END = "end"  # a file that is written after all others
_NAME = re.compile(
    rf".*\.({ENTER}|{LEAVE}|{UPDATE}|{OF_INPUT}|{OF_OUTPUT}|{END})\.(\d+)\.(\d+)_(\w+?)_(\d+)\.npy"
)
_LONGEST = 160  # characters of a key in a file's name: a name has at most 255


class DumpedFile(NamedTuple):
    """A file of ops.TensorDump."""

    id: int  # its place in the order of arrival
    kind: str
    plan: int  # the number of its plan
    number: int  # the number of the tensor in the plan
    dtype: str  # the dtype on the device, in small letters: a file holds bfloat16 as float32
    path: str

    def read(self) -> Array:
        """Return the array; raise OSError, ValueError or EOFError when it is gone, cut off or no array."""
        return np.asarray(np.load(self.path, allow_pickle=False))


class Event(NamedTuple):
    """Files that one place of a graph wrote in one run: number of the tensor -> file."""

    kind: str
    plan: int
    files: dict[int, DumpedFile]


def base_name(key: str, kind: str, plan: int, number: int) -> str:
    """Return the last part of the path that a graph has.

    >>> base_name("Cell.fc.Dense", ENTER, 3, 0)
    'Cell.fc.Dense.enter.3.0'
    """
    return f"{key.replace(os.sep, '_')[-_LONGEST:]}.{kind}.{plan}.{number}"


def list_files(folder: str) -> list[DumpedFile]:
    """Return the files of a folder in the order of their arrival; other files are left out."""
    found = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        names = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is not None:
            kind, plan, number, dtype, identity = match.groups()
            path = os.path.join(folder, name)
            found.append(DumpedFile(int(identity), kind, int(plan), int(number), dtype, path))
    return sorted(found)


def wait_for_end(
    folder: str, patience: float, clock: Callable[[], float] = time.monotonic
) -> DumpedFile | None:
    """Wait until the file of kind END is complete, and return it: then all files before it are complete."""
    count = -1
    since = clock()
    while True:
        files = list_files(folder)
        ends = [file for file in files if file.kind == END]
        if ends and _is_complete(ends[-1]):
            return ends[-1]
        if len(files) != count:
            count = len(files)
            since = clock()
        elif clock() - since > patience:  # seconds without any new file
            return None
        time.sleep(0.005)


def _is_complete(file: DumpedFile) -> bool:
    try:
        np.load(
            file.path, mmap_mode="r", allow_pickle=False
        )  # it knows the length, and reads nothing
    except (OSError, ValueError, EOFError):
        return False
    return True


def arrived(files: list[DumpedFile], count: Callable[[int], int]) -> list[DumpedFile]:
    """Return the files of a running step that can be sent now: complete ones, of events that have all their files.

    All but the last in the order of arrival are complete; ``count`` is that of ``events``.
    """
    if files and not _is_complete(files[-1]):
        files = files[:-1]
    last = next(reversed(list(events(files, count))), None)
    if last is None or last.kind not in (ENTER, LEAVE) or len(last.files) >= count(last.plan):
        return files
    late = {file.id for file in last.files.values()}
    return [file for file in files if file.id not in late]


def remove_files(files: Iterable[DumpedFile]) -> None:
    """Remove files; one that is gone already, or that cannot be removed, is left."""
    for file in files:
        with contextlib.suppress(OSError):
            os.remove(file.path)


def events(files: Iterable[DumpedFile], count: Callable[[int], int]) -> Iterator[Event]:
    """Yield the events that files stand for, in the order of their arrival.

    The files of one call's begin, or of its end, follow each other. Gradients may arrive between them. ``count`` tells
    how many files the event of a plan has; one for a marker.
    """
    current: Event | None = None
    for file in files:
        if file.kind in (UPDATE, *GRADIENTS):
            yield Event(file.kind, file.plan, {file.number: file})
            continue
        if file.kind == END:
            continue
        follows = (
            current is not None
            and current[:2] == (file.kind, file.plan)
            and file.number > max(current.files)
        )
        if current is not None and not follows:
            yield current
            current = None
        current = current or Event(file.kind, file.plan, {})
        current.files[file.number] = file
        if len(current.files) >= count(file.plan):
            yield current
            current = None
    if current is not None:
        yield current
