# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One array of a dump, in the dtype that its tensor had."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from probe.errors import UsageError
from probe.reading.dumps import document, torch_arrays
from probe.reading.dumps.npy import read_npy
from probe.reading.dumps.values import tensors
from probe.store import file_names

_BFLOAT16 = "BFloat16"


def load(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return an array of a dump in the dtype that its tensor had: bfloat16 as ``ml_dtypes.bfloat16``.

    Args:
        path: a .npy file in a ``dump_tensor_data`` folder. The dump.json beside that folder says whether one of float32
            was bfloat16; it is read once for all arrays of a folder. Also a .pt file of msprobe for PyTorch.

    Raises:
        UsageError: when it is no array, or cannot be read.

    Example::

        array = probe.load("dump/step0/rank/dump_tensor_data/Functional.relu.0.forward.output.0.npy")
    """
    path = os.fspath(path)
    array = _read(path)
    if array.dtype == np.float32 and os.path.basename(path) in _bfloat16_names(path):
        return _as_dtype(array, _BFLOAT16)
    return _as_dtype(array, "")


def load_array(path: str, dtype: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return an array whose record has this dtype.

    If ``mapped``, the file is mapped into memory in place of being read. Raise UsageError when it is no array, or
    cannot be read.
    """
    return _as_dtype(_read(path, mapped), dtype)


def read_array(path: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return the array in a file, also one of MindSpore's bfloat16 on CPU, whose dtype numpy does not know.

    Raise OSError or ValueError when it cannot be read.
    """
    found, is_bfloat16 = read_npy(path, mapped)
    return _as_dtype(found, _BFLOAT16) if is_bfloat16 else found


def _read(path: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    if path.endswith(torch_arrays.SUFFIX):
        return torch_arrays.read_tensor(path, mapped)
    try:
        return read_array(path, mapped)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _as_dtype(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    as_it_is = array.dtype.kind == "V" and array.dtype.itemsize == 2
    if as_it_is or (dtype == _BFLOAT16 and array.dtype == np.float32):
        import ml_dtypes

        kind = np.dtype(ml_dtypes.bfloat16)
        return array.view(kind) if as_it_is else array.astype(kind)
    return array


def _bfloat16_names(path: str) -> frozenset[str]:
    """Return the files beside this one whose tensors were bfloat16, by the documents above."""
    above = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    for name in (file_names.DUMP, file_names.DEBUG):
        beside = os.path.join(above, name)
        try:
            state = os.stat(beside)
        except OSError:
            continue
        return _named_bfloat16(beside, state.st_mtime_ns, state.st_size)
    return frozenset()


@functools.lru_cache(maxsize=8)
def _named_bfloat16(path: str, changed: int, size: int) -> frozenset[str]:
    try:
        data = document.read_document(path).get("data")
    except UsageError:  # a broken document does not keep an array
        return frozenset()
    if not isinstance(data, dict):
        return frozenset()
    records = (record for name, entry in data.items() for _, record in tensors(name, entry))
    return frozenset(str(record.get("data_name")) for record in records if record.get("dtype") == _BFLOAT16)
