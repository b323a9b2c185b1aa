# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The .npy files of one rank folder."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
import itertools
import os
from typing import Any

import numpy as np

from probe.naming import clean
from probe.store import file_io, file_names
from probe.store.disk_budget import DiskBudget
from probe.store.equal_arrays import EqualArrays

_LONGEST = 255
_ENDING = ".npy"


class ArrayWriter:
    """Writes arrays below one folder; over-long names are shortened and listed in mapping.csv.

    Arrays go to ``dump_tensor_data`` in the rank folder, made with the first one. If ``link_equal``, arrays of equal
    bytes share one file.
    """

    def __init__(self, folder: str, budget: DiskBudget, link_equal: bool = True) -> None:
        self.folder = os.path.join(folder, file_names.ARRAYS)
        self.budget = budget
        self._equal = EqualArrays() if link_equal else None
        self._made, self._names = False, set[str]()

    def save(self, name: str, array: np.ndarray) -> str:  # type: ignore[type-arg]  # any dtype
        """Write an array in its own dtype and return the name of its file, or "" where there is no room for it.

        Raise OSError when it cannot be written; a part of it does not stay.
        """
        if not (self._made and os.path.isdir(self.folder)):  # else somebody may have removed it
            file_io.make_dirs(self.folder)
            self._made = True
        name = self._unused(clean(name).replace("/", "_")) + _ENDING
        file_name = name if len(name) <= _LONGEST else _short(name)
        if not self._link_or_write(f"{self.folder}/{file_name}", np.asarray(array, order="C")):
            return ""
        if file_name != name:
            row = io.StringIO()
            csv.writer(row, lineterminator="\n").writerow([file_name, name])
            file_io.append(os.path.join(self.folder, file_names.MAPPING), row.getvalue())
        return file_name

    def _unused(self, name: str) -> str:
        """Return a name that no array of the step has yet: the keys "a b" and "a_b" would have the same."""
        numbers = itertools.count(2)
        found = name
        while found in self._names:
            found = f"{name}.{next(numbers)}"
        self._names.add(found)
        return found

    def _link_or_write(self, path: str, array: np.ndarray) -> bool:  # type: ignore[type-arg]
        header, content = _header(array.dtype, array.shape), array.reshape(-1).view(np.uint8)
        if not self.budget.allows_file(self.folder):
            return False
        if self._equal is not None and self._equal.link(header, content, path):
            return True
        if not self.budget.reserve(self.folder, array.nbytes):
            return False
        status = file_io.write(path, header, content.data)
        if self._equal is not None:
            self._equal.add(header, content, path, status)
        return True


def _short(name: str) -> str:
    digest = hashlib.sha256(name[: -len(_ENDING)].encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - len(_ENDING) - len(digest) - 1]}.{digest}{_ENDING}"


@functools.lru_cache(4096)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the first bytes of a file, which arrays of one dtype and shape share."""
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(dtype)  # type: ignore[no-untyped-call]
    np.lib.format.write_array_header_1_0(text, {"descr": descr, "fortran_order": False, "shape": shape})  # type: ignore[no-untyped-call]
    return text.getvalue()
