# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Task statistics where MindSpore saves arrays only: each is measured as it appears, and deleted."""

from __future__ import annotations

import csv
import glob
import hashlib
import io
import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from probe.measure.statistics import STATISTICS, SelectedStatistics
from probe.reading.dumps.kernels.tables import (
    COLUMNS,
    HEAD,
    STATISTICS as TABLE,
    ArrayName,
    parse,
    read_mapping,
)
from probe.reading.dumps.load import read_array
from probe.store import file_io

_log = logging.getLogger("probe")

_PAUSE = 0.05  # seconds between two looks at the folder
_HASHES: dict[str, Callable[[bytes], Any]] = {"md5": hashlib.md5, "sha1": hashlib.sha1}


class ArrayMeasurer:
    """Turns arrays into rows of statistic.csv, in MindSpore's columns."""

    def __init__(self, categories: Sequence[str]) -> None:
        renamed = {"hash": "sha1", "hash:sha1": "sha1", "hash:md5": "md5"}
        #: the statistics, by MindSpore's names
        self._categories = list(dict.fromkeys(renamed.get(name, name) for name in categories))
        self._statistics = SelectedStatistics(
            [name for name in self._categories if name in STATISTICS]
        )

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [*HEAD, *(COLUMNS[name][0] for name in self._categories)]

    def row(self, name: ArrayName, array: np.ndarray[Any, Any]) -> list[Any]:
        """Return the row of one array."""
        record = self._statistics(array)
        content = (
            np.ascontiguousarray(array).tobytes() if set(self._categories) & set(_HASHES) else b""
        )
        numbers = [
            _HASHES[category](content).hexdigest()
            if category in _HASHES
            else record[COLUMNS[category][1]]
            for category in self._categories
        ]
        shape = f"({','.join(map(str, array.shape))})"
        dtype = name.dtype.lower() or array.dtype.name
        return [
            *name[:7],
            array.nbytes,
            dtype,
            shape,
            *("" if number is None else number for number in numbers),
        ]


class FolderWatcher:
    """Measures the arrays of one rank while MindSpore writes them, on a thread of its own.

    Below ``net_folder``, ``{path}/rank_{rank}/{net_name}``, are the graphs, and in them the steps. A ``measurer`` of
    None leaves the arrays as they are. ``note_size`` is called with the bytes of arrays of the step that are on disk.
    """

    def __init__(
        self,
        net_folder: str,
        measurer: ArrayMeasurer | None,
        keep: bool,
        note_size: Callable[[int], None],
    ) -> None:
        self._folder = net_folder
        self._measurer = measurer
        self._keep = keep
        self._note_size = note_size
        self._done: set[str] = set()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._step = -1  # none is open
        self._has_failed = False

    def begin(self, step: int) -> None:
        """Measure the arrays of a step from now on."""
        self._step = step
        if self._thread is None:
            self._end.clear()
            self._thread = threading.Thread(target=self._run, name="probe-kernels", daemon=True)
            self._thread.start()

    def finish_step(self) -> None:
        """Measure all arrays of the step: MindSpore has written them."""
        self._look()
        with self._lock:
            self._done.clear()
            self._step = -1

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        thread = self._thread
        self._thread = None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while not self._end.wait(_PAUSE):
            if self._step >= 0:
                self._look()

    def _look(self) -> None:
        with self._lock:
            try:
                folders = {
                    folder: arrays_in(folder) for folder in step_folders(self._folder, self._step)
                }
                self._note_size(
                    sum(_size(entry.path) for entries in folders.values() for entry in entries)
                )
                for folder, entries in folders.items():
                    self._measure(folder, entries)
            except Exception as error:
                self._fail(self._folder, error)

    def _measure(self, folder: str, entries: list[os.DirEntry[str]]) -> None:
        waiting = [
            entry for entry in entries if entry.name not in self._done and _is_complete(entry)
        ]
        if not waiting or self._measurer is None:
            return
        originals = read_mapping(folder, [])
        parsed = [(parse(originals.get(entry.name, entry.name)), entry) for entry in waiting]
        named = [(name, entry) for name, entry in parsed if name is not None]
        for name, entry in sorted(named, key=lambda item: item[0].timestamp):
            try:
                _append(
                    folder, self._measurer.header, self._measurer.row(name, read_array(entry.path))
                )
                if not self._keep:
                    os.remove(entry.path)
            except (OSError, ValueError, EOFError) as error:
                self._fail(entry.path, error)
            self._done.add(entry.name)

    def _fail(self, path: str, error: Exception) -> None:
        if not self._has_failed:
            self._has_failed = True
            _log.error(
                "%s stays unmeasured, the training continues: %s", path, error, exc_info=error
            )


def _append(folder: str, header: list[str], row: list[Any]) -> None:
    path = os.path.join(folder, TABLE)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if not os.path.exists(path):
        writer.writerow(header)
    writer.writerow(row)
    file_io.append(path, text.getvalue())


def step_folders(net_folder: str, step: int) -> list[str]:
    """Return the folders of a step, one for each graph."""
    return sorted(
        filter(os.path.isdir, glob.glob(os.path.join(glob.escape(net_folder), "*", str(step))))
    )


def arrays_in(folder: str) -> list[os.DirEntry[str]]:
    """Return the arrays in a folder."""
    return [entry for entry in os.scandir(folder) if entry.name.endswith(".npy")]


def _is_complete(entry: os.DirEntry[str]) -> bool:
    """Return whether MindSpore has written a file to its end: it then makes it read-only."""
    try:
        return not entry.stat().st_mode & stat.S_IWUSR
    except FileNotFoundError:
        return False


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0
