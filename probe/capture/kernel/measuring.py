# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Task statistics where MindSpore saves arrays only: each is measured as it appears, and deleted."""

from __future__ import annotations

import csv
import hashlib
import io
import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from probe.measure.statistic_table import STATISTICS, SelectedStatistics
from probe.reading.kernels.names import COLUMNS, HEAD, ArrayName, parse
from probe.reading.kernels.names import STATISTICS as TABLE
from probe.reading.kernels.tables import read_mapping
from probe.store import file_io

_log = logging.getLogger("probe")

#: seconds between two looks at the folder
_PAUSE = 0.05
_HASHES: dict[str, Callable[[bytes], Any]] = {"md5": hashlib.md5, "sha1": hashlib.sha1}


class ArrayMeasurer:
    """Turns arrays into rows of statistic.csv, in MindSpore's columns.

    Args:
        categories: the statistics, by MindSpore's names.
    """

    def __init__(self, categories: Sequence[str]) -> None:
        renamed = {"hash": "sha1", "hash:sha1": "sha1", "hash:md5": "md5"}
        self._categories = list(dict.fromkeys(renamed.get(name, name) for name in categories))
        self._statistics = SelectedStatistics([name for name in self._categories if name in STATISTICS])

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [*HEAD, *(COLUMNS[name][0] for name in self._categories)]

    def row(self, name: ArrayName, array: np.ndarray[Any, Any]) -> list[Any]:
        """Return the row of one array."""
        record = self._statistics(array)
        content = np.ascontiguousarray(array).tobytes() if set(self._categories) & set(_HASHES) else b""
        numbers = [
            _HASHES[category](content).hexdigest() if category in _HASHES else record[COLUMNS[category][1]]
            for category in self._categories
        ]
        shape = f"({','.join(map(str, array.shape))})"
        dtype = name.dtype.lower() or array.dtype.name
        return [*name[:7], array.nbytes, dtype, shape, *("" if number is None else number for number in numbers)]


class FolderWatcher:
    """Measures the arrays of one rank while MindSpore writes them, on a thread of its own.

    Args:
        net_folder: ``{path}/rank_{rank}/{net_name}``: below it are the graphs, and in them the steps.
        measurer: makes the rows.
        keep: whether the arrays stay.
        most: most bytes of arrays on disk; None for no limit.
        give_up: called when there are more; MindSpore then writes no more in this step.
    """

    def __init__(
        self, net_folder: str, measurer: ArrayMeasurer, keep: bool, most: int | None, give_up: Callable[[], None]
    ) -> None:
        self._folder, self._measurer, self._keep = net_folder, measurer, keep
        self._most, self._give_up = most, give_up
        self._measured: set[str] = set()
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None
        self._step = -1  # none is open
        self.failed = False

    def begin(self, step: int) -> None:
        """Measure the arrays of a step from now on."""
        self._step = step
        if self._thread is None:
            self._end.clear()
            self._thread = threading.Thread(target=self._run, name="probe-kernels", daemon=True)
            self._thread.start()

    def finish_step(self) -> None:
        """Measure all arrays of the step: MindSpore has written them."""
        self._measure()
        with self._lock:
            self._measured.clear()
            self._step = -1

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while not self._end.wait(_PAUSE):
            self._measure()

    def _measure(self) -> None:
        with self._lock:
            for folder in _step_folders(self._folder, self._step):
                try:
                    self._measure_folder(folder)
                except Exception as error:  # noqa: PERF203 - one broken item does not hide the others
                    if not self.failed:
                        self.failed = True
                        _log.error("the arrays in %s stay unmeasured: %s", folder, error, exc_info=error)

    def _measure_folder(self, folder: str) -> None:
        found = [entry for entry in os.scandir(folder) if entry.name.endswith(".npy")]
        waiting = [entry for entry in found if entry.name not in self._measured and _is_complete(entry)]
        if self._most is not None and sum(_size(entry.path) for entry in found) > self._most:
            self._give_up()
        if not waiting:
            return
        originals = read_mapping(folder)
        parsed = [(parse(originals.get(entry.name, entry.name)), entry) for entry in waiting]
        named = [(name, entry) for name, entry in parsed if name is not None]
        for name, entry in sorted(named, key=lambda item: item[0].timestamp):
            self._append(folder, self._measurer.row(name, np.load(entry.path, allow_pickle=False)))
            if self._keep:
                self._measured.add(entry.name)
            else:
                os.remove(entry.path)

    def _append(self, folder: str, row: list[Any]) -> None:
        path = os.path.join(folder, TABLE)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not os.path.exists(path):
            writer.writerow(self._measurer.header)
        writer.writerow(row)
        file_io.append(path, text.getvalue())


def _step_folders(net_folder: str, step: int) -> Iterator[str]:
    """Yield the folders of a step, one for each graph."""
    try:
        graphs = sorted(entry.path for entry in os.scandir(net_folder) if entry.is_dir())
    except FileNotFoundError:
        return
    for graph in graphs:
        folder = os.path.join(graph, str(step))
        if os.path.isdir(folder):
            yield folder


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
