# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The .npy files of one rank folder."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from typing import Any

import numpy as np

from probe.naming import clean
from probe.store import file_io, layout
from probe.store.disk_budget import DiskBudget

_LONGEST = 255
_ENDING = ".npy"


class ArrayWriter:
    """Writes arrays below one folder; over-long names are shortened and listed in mapping.csv.

    Args:
        folder: the rank folder; arrays go to ``dump_tensor_data`` in it, made with the first one.
        budget: the bytes that may be written.
    """

    def __init__(self, folder: str, budget: DiskBudget) -> None:
        self.folder = os.path.join(folder, layout.ARRAYS)
        self._budget = budget
        self._made = False
        self._headers: dict[tuple[np.dtype[Any], tuple[int, ...]], bytes] = {}

    def save(self, name: str, array: np.ndarray) -> str:  # type: ignore[type-arg]  # any dtype
        """Write an array in its own dtype and return the name of its file, or "" where there is no room for it.

        Raises:
            OSError: when it cannot be written; what was written of it is removed.
        """
        if not self._made:
            file_io.make_dirs(self.folder)
            self._made = True
        if not self._budget.reserve(self.folder, array.nbytes):
            return ""
        file_name = self._file_name(clean(name))
        array = np.asarray(array, order="C")
        parts = self._header(array), array.reshape(-1).view(np.uint8).data
        try:
            file_io.write(f"{self.folder}/{file_name}", *parts)
        except FileNotFoundError:  # somebody has removed the folder
            file_io.make_dirs(self.folder)
            file_io.write(f"{self.folder}/{file_name}", *parts)
        return file_name

    def _header(self, array: np.ndarray) -> bytes:  # type: ignore[type-arg]
        """Return the first bytes of the file, which arrays of one shape and dtype share."""
        key = (array.dtype, array.shape)
        header = self._headers.get(key)
        if header is None:
            text = io.BytesIO()
            descr = np.lib.format.dtype_to_descr(array.dtype)  # type: ignore[no-untyped-call]
            fields = {"descr": descr, "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(text, fields)  # type: ignore[no-untyped-call]
            header = self._headers[key] = text.getvalue()
        return header

    def _file_name(self, name: str) -> str:
        if len(name) + len(_ENDING) <= _LONGEST:
            return name + _ENDING
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        short = f"{name[: _LONGEST - len(_ENDING) - len(digest) - 1]}.{digest}{_ENDING}"
        row = io.StringIO()
        csv.writer(row, lineterminator="\n").writerow([short, name + _ENDING])
        file_io.append(os.path.join(self.folder, layout.MAPPING), row.getvalue())
        return short
