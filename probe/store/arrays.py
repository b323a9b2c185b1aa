# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The .npy files of one rank folder."""

from __future__ import annotations

import csv
import hashlib
import io
import os

import numpy as np

from probe.naming import clean
from probe.store import folders

_LONGEST = 255
_ENDING = ".npy"


class Arrays:
    """Writes arrays below one folder; over-long names are shortened and listed in mapping.csv.

    Args:
        folder: the rank folder; arrays go to ``dump_tensor_data`` in it, made with the first one.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, folders.ARRAYS)
        self._made = False

    def save(self, name: str, array: np.ndarray) -> str:  # type: ignore[type-arg]  # any dtype
        """Write an array in its own dtype and return the name of its file.

        Raises:
            OSError: when it cannot be written; what was written of it is removed.
        """
        if not self._made:
            folders.make(self.folder)
            self._made = True
        file_name = self._file_name(clean(name))
        path = os.path.join(self.folder, file_name)
        with folders.create(path) as file:
            try:
                np.save(file, array, allow_pickle=False)
            except OSError:
                os.remove(path)
                raise
        return file_name

    def _file_name(self, name: str) -> str:
        if len(name) + len(_ENDING) <= _LONGEST:
            return name + _ENDING
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        short = f"{name[: _LONGEST - len(_ENDING) - len(digest) - 1]}.{digest}{_ENDING}"
        row = io.StringIO()
        csv.writer(row, lineterminator="\n").writerow([short, name + _ENDING])
        folders.append(os.path.join(self.folder, folders.MAPPING), row.getvalue())
        return short
