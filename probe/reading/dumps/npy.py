# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads .npy files: the header first, whose claims are compared with the size of the file. Nothing is unpickled."""

from __future__ import annotations

import ast
import math
import os
from typing import IO, Any, NamedTuple

import numpy as np

from probe.door import open_file
from probe.reading.dumps.shapes import lengths

_MAGIC, _MOST_HEADER, _MOST_DIMENSIONS = b"\x93NUMPY", 1 << 16, 32
#: MindSpore's name of bfloat16 in the files of its kernel dump on CPU, which numpy does not know
_MINDSPORE_BFLOAT16 = "<E2"


class ArrayHeader(NamedTuple):
    """The header of a .npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: str  # "F" where the first index runs fastest, else "C"
    start: int  # the place of the first element
    is_bfloat16: bool  # whether it is MindSpore's bfloat16, read as two bytes


def array_header(file: IO[bytes], size: int) -> ArrayHeader:
    """Return the header of a .npy file of this size; raise ValueError when it is wrong, or elements are missing."""
    begin = file.read(8)
    if begin[:6] != _MAGIC or len(begin) < 8:
        raise ValueError("it is no .npy file")
    length = int.from_bytes(file.read(2 if begin[6] == 1 else 4), "little")
    if length > _MOST_HEADER:
        raise ValueError(f"its header has {length} bytes")
    descr, order, shape = _fields(file.read(length))
    if lengths(list(shape)) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError("its shape is none")
    dtype = np.dtype("<V2") if descr == _MINDSPORE_BFLOAT16 else _dtype(descr)
    start, stored = file.tell(), math.prod(shape) * dtype.itemsize
    if stored > size - start:
        raise ValueError(f"its header says {stored} bytes, and there are {max(size - start, 0)}")
    return ArrayHeader(dtype, shape, "F" if order else "C", start, descr == _MINDSPORE_BFLOAT16)


def _fields(text: bytes) -> tuple[str, bool, tuple[Any, ...]]:
    try:
        found = ast.literal_eval(text.decode("latin1").strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        raise ValueError("its header is cut or wrong") from None
    if type(found) is not dict or found.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header is cut or wrong")
    descr, order, shape = found["descr"], found["fortran_order"], found["shape"]
    if type(descr) is not str or type(order) is not bool or type(shape) is not tuple:
        raise ValueError("its header has a dtype, an order or a shape that is none")
    return descr, order, shape


def _dtype(descr: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, SyntaxError):
        raise ValueError(f"its dtype {descr[:20]!r} is unknown") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never read")
    if dtype.itemsize < 1 or dtype.names is not None or dtype.shape:
        raise ValueError(f"its dtype {descr[:20]!r} is none of a tensor")
    return dtype


def read_npy(path: str, mapped: bool = False) -> tuple[np.ndarray[Any, Any], bool]:
    """Return the array of a .npy file, and whether it is MindSpore's bfloat16, as items of two bytes.

    If ``mapped``, the file is mapped into memory in place of being read. Raise OSError or ValueError when it cannot be
    read.
    """
    with open_file(path) as file:
        header = array_header(file, os.fstat(file.fileno()).st_size)
        count = math.prod(header.shape)
        if not count:
            return np.empty(header.shape, header.dtype), header.is_bfloat16
        order: Any = header.order
        try:
            if mapped:
                mapping = np.memmap(file, header.dtype, "r", header.start, header.shape, order)
                return mapping, header.is_bfloat16
            found: np.ndarray[Any, Any] = np.fromfile(file, header.dtype, count).reshape(header.shape, order=order)
        except (MemoryError, OverflowError):
            raise ValueError(f"there is no memory for its {count * header.dtype.itemsize} bytes") from None
    return found, header.is_bfloat16
