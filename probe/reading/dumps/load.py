# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One array of a dump, in the dtype that its tensor had; .npy files are read with the header first.

Its claims are compared with the size of the file. Nothing is unpickled. Arrays for which MindSpore has written no
statistics get a record.
"""

from __future__ import annotations

import ast
import functools
import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.dumps import document, torch_arrays
from probe.reading.dumps.shapes import lengths
from probe.reading.dumps.values import NUMBERS, Record, dtype_name, tensors
from probe.store import file_names

_MAGIC = b"\x93NUMPY"
_MOST_HEADER = 1 << 16
_MOST_DIMENSIONS = 32
#: MindSpore's name of bfloat16 in the files of its kernel dump on CPU, which numpy does not know
_MINDSPORE_BFLOAT16 = "<E2"
_BFLOAT16 = "BFloat16"
#: dtypes that are stored as float32, and the names of ml_dtypes; it has none for HiFloat8
NAMED_DTYPES = {_BFLOAT16: "bfloat16", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}


class ArrayHeader(NamedTuple):
    """The header of a .npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Any  # "F" where the first index runs fastest, else "C"
    start: int  # the place of the first element
    is_bfloat16: bool  # whether it is MindSpore's bfloat16, read as two bytes


def array_header(file: IO[bytes], size: int) -> ArrayHeader:
    """Return the header of a .npy file of this size; raise ValueError when it is wrong, or elements are missing."""
    begin = file.read(8)
    if begin[:6] != _MAGIC or len(begin) < 8:
        raise ValueError(say("door.no_npy"))
    length = int.from_bytes(file.read(2 if begin[6] == 1 else 4), "little")
    if length > _MOST_HEADER:
        raise ValueError(say("door.npy_head", size=length))
    descr, order, shape = _fields(file.read(length))
    if lengths(list(shape)) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(say("door.npy_shape"))
    dtype = np.dtype("<V2") if descr == _MINDSPORE_BFLOAT16 else _dtype(descr)
    start = file.tell()
    stored = math.prod(shape) * dtype.itemsize
    if stored > size - start:
        raise ValueError(say("door.npy_size", stored=stored, size=max(size - start, 0)))
    return ArrayHeader(dtype, shape, "F" if order else "C", start, descr == _MINDSPORE_BFLOAT16)


def _fields(text: bytes) -> tuple[str, bool, tuple[Any, ...]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ValueError(say("door.npy_cut")) from None
    if type(found) is not dict or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError(say("door.npy_cut"))
    descr = found["descr"]
    order = found["fortran_order"]
    shape = found["shape"]
    if type(descr) is not str or type(order) is not bool or type(shape) is not tuple:
        raise ValueError(say("door.npy_fields"))
    return descr, order, shape


def _dtype(descr: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise ValueError(say("door.npy_unknown", dtype=repr(descr[:20]))) from None
    if dtype.hasobject:
        raise ValueError(say("door.npy_objects"))
    if dtype.itemsize < 1 or dtype.names is not None or dtype.shape:
        raise ValueError(say("door.npy_dtype", dtype=repr(descr[:20])))
    return dtype


def load(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """Return an array of a dump in the dtype that its tensor had: bfloat16 and float8 as those of ``ml_dtypes``.

    Args:
        path: a .npy file in a ``dump_tensor_data`` folder. The dump.json beside that folder says whether one of float32
            was bfloat16 or float8; it is read once for all arrays of a folder. HiFloat8 stays float32. Also a .pt file
            of msprobe for PyTorch.

    Raises:
        UsageError: when it is no array, or cannot be read.

    Example::

        array = probe.load("dump/step0/rank/dump_tensor_data/Functional.relu.0.forward.output.0.npy")
    """
    path = os.fspath(path)
    array = _read(path)
    return _as_dtype(
        array, _dtypes(path).get(os.path.basename(path), "") if array.dtype == np.float32 else ""
    )


def load_array(path: str, dtype: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return an array whose record has this dtype, mapped into memory if ``mapped``; raise UsageError for none."""
    return _as_dtype(_read(path, mapped), dtype)


def read_array(path: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return the array in a file, also of MindSpore's own bfloat16.

    If ``mapped``, the file is mapped into memory in place of being read. Raise OSError or ValueError when it is broken.
    """
    found: np.ndarray[Any, Any]
    with open_file(path) as file:
        header = array_header(file, os.fstat(file.fileno()).st_size)
        count = math.prod(header.shape)
        order = header.order
        try:
            if not count:
                found = np.empty(header.shape, header.dtype)
            elif mapped:
                found = np.memmap(file, header.dtype, "r", header.start, header.shape, order)
            else:
                found = np.fromfile(file, header.dtype, count).reshape(header.shape, order=order)
        except (MemoryError, OverflowError):
            raise ValueError(
                f"there is no memory for its {count * header.dtype.itemsize} bytes"
            ) from None
    return _as_dtype(found, _BFLOAT16) if header.is_bfloat16 else found


def _read(path: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    if path.endswith(torch_arrays.SUFFIX):
        return torch_arrays.read_tensor(path, mapped)
    try:
        return read_array(path, mapped)
    except (OSError, ValueError) as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from error


def _as_dtype(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    as_it_is = array.dtype.kind == "V" and array.dtype.itemsize == 2
    if as_it_is or (dtype in NAMED_DTYPES and array.dtype == np.float32):
        import ml_dtypes

        kind = np.dtype(getattr(ml_dtypes, NAMED_DTYPES[_BFLOAT16 if as_it_is else dtype]))
        return array.view(kind) if as_it_is else array.astype(kind)
    return array


def _dtypes(path: str) -> dict[str, str]:
    """Return the dtypes of the files beside this one that hold other ones as float32, by the documents above."""
    above = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    for name in (file_names.DUMP, file_names.DEBUG):
        beside = os.path.join(above, name)
        try:
            state = os.stat(beside)
        except OSError:
            continue
        return _named_dtypes(beside, state.st_mtime_ns, state.st_size)
    return {}


@functools.lru_cache(maxsize=8)
def _named_dtypes(path: str, changed: int, size: int) -> dict[str, str]:
    try:
        data = document.read_document(path).get("data")
    except UsageError:  # a broken document does not keep an array
        return {}
    if not isinstance(data, dict):
        return {}
    records = (record for name, entry in data.items() for _, record in tensors(name, entry))
    named = ((str(record.get("data_name")), str(record.get("dtype"))) for record in records)
    return {name: dtype for name, dtype in named if dtype in NAMED_DTYPES}


def record_of(path: str, dtype: str) -> Record:
    """Return the record of the array in a file; ``dtype`` is that of its name, or "". Raise OSError or ValueError."""
    array = read_array(path, mapped=os.lstat(path).st_size > 1 << 20)
    name = dtype_name(dtype or array.dtype.name)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return {
        "type": "mindspore.Tensor",
        "dtype": name,
        "shape": list(array.shape),
        **numbers(np.asarray(array)),
    }


def numbers(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return Max, Min, Mean and Norm of an array, and the counts of NaN and Inf where there are some.

    >>> numbers(np.array([3.0, 4.0], np.float32))
    {'Max': 4.0, 'Min': 3.0, 'Mean': 3.5, 'Norm': 5.0}
    """
    kind = array.dtype.kind
    if array.size == 0 or kind not in "biufc":
        return dict.fromkeys(NUMBERS)
    if kind == "b":
        return {"Max": bool(array.any()), "Min": bool(array.all()), "Mean": None, "Norm": None}
    with np.errstate(all="ignore"):
        wide = (np.abs(array) if kind == "c" else array).astype(np.float64).ravel()
        nans = int(np.isnan(wide).sum())
        infinities = int(np.isinf(wide).sum())
        if nans:
            four: tuple[Any, ...] = (math.nan,) * 4
        elif infinities:
            four = float(wide.max()), float(wide.min()), float(wide.sum()), math.inf
        else:
            ends = array if kind in "iu" else wide
            scale = max(abs(float(wide.max())), abs(float(wide.min()))) or 1.0
            scaled = wide / scale
            norm = math.sqrt(float(scaled.dot(scaled))) * scale
            four = ends.max().item(), ends.min().item(), float(scaled.mean()) * scale, norm
    counts = {"nan_count": nans, "inf_count": infinities}
    return {**dict(zip(NUMBERS, four)), **{key: count for key, count in counts.items() if count}}
