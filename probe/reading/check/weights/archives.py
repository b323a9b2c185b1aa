# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Reads .safetensors and .npz: the description at once, the numbers piece by piece."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.reading.check.weights.weight import PIECE, Array, Weight, checked, in_file, numpy_dtype, word_of
from probe.reading.dumps.npy import ArrayHeader, array_header

_LONGEST_HEADER = 100_000_000
#: dtype of safetensors -> MindSpore's word
_WORDS = {
    "F64": "Float64", "F32": "Float32", "F16": "Float16", "BF16": "BFloat16", "I64": "Int64", "I32": "Int32",
    "I16": "Int16", "I8": "Int8", "U64": "UInt64", "U32": "UInt32", "U16": "UInt16", "U8": "UInt8", "BOOL": "Bool",
    "F8_E4M3": "Float8E4M3FN", "F8_E5M2": "Float8E5M2", "C64": "Complex64",
}  # fmt: skip
_BROKEN = (OSError, ValueError, EOFError, KeyError, SyntaxError, NotImplementedError, RuntimeError, zipfile.BadZipFile,
           zlib.error, MemoryError)  # fmt: skip


def read_safetensors(path: str) -> dict[str, Weight]:
    """Return the parameters of a .safetensors by name; raise UsageError when it is cut, or none."""
    try:
        with open_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, _LONGEST_HEADER):
                raise ValueError("it is cut, or no file of safetensors")
            header = json.loads(file.read(length).decode("utf-8"))
    except RecursionError:
        raise UsageError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(header, dict):
        raise UsageError(f"{path} cannot be read: it is no file of safetensors")
    return {name: _in_safetensors(path, name, item, 8 + length, size) for name, item in header.items()
            if name != "__metadata__"}  # fmt: skip


def _in_safetensors(path: str, name: str, item: Any, base: int, size: int) -> Weight:
    item = item if isinstance(item, dict) else {}
    word, places = _WORDS.get(str(item.get("dtype")), str(item.get("dtype"))), item.get("data_offsets")
    if not isinstance(places, list) or len(places) != 2 or any(type(place) is not int for place in places):
        raise UsageError(f"{path} cannot be read: {name[:80]!r} has no place")
    begin, end = places
    shape = checked(path, name, word, item.get("shape"), end - begin)
    if not 0 <= begin <= end <= size - base:
        raise UsageError(f"{path} is cut: {base + end - size} bytes of {name[:80]!r} are missing")
    return Weight(word, shape, in_file(path, [(base + begin, end - begin)], numpy_dtype(word)))


def read_npz(path: str) -> dict[str, Weight]:
    """Return the arrays of an .npz by name; raise UsageError when it is cut, none, or holds Python's objects."""
    found = {}
    try:
        with open_file(path) as whole, zipfile.ZipFile(whole) as archive:
            for info in archive.infolist():
                name = info.filename[:-4] if info.filename.endswith(".npy") else info.filename
                with archive.open(info) as file:
                    head = array_header(file, info.file_size)
                    word = word_of(head.dtype)
                    checked(path, name, word, head.shape, info.file_size - file.tell())
                read: Callable[[], Iterator[Array]] = partial(_pieces, path, info.filename, head)
                found[name] = Weight(
                    word, head.shape, partial(_turned, read, head.shape) if head.order == "F" else read
                )
    except _BROKEN as error:
        if isinstance(error, UsageError) and str(error).startswith(path):
            raise
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    return found


def _pieces(path: str, member: str, head: ArrayHeader) -> Iterator[Array]:
    """Yield the elements of a member, which may be compressed."""
    dtype = head.dtype
    try:
        with open_file(path) as whole, zipfile.ZipFile(whole) as archive, archive.open(member) as file:
            file.read(head.start)
            size = PIECE - PIECE % dtype.itemsize
            while data := file.read(size):
                while len(data) % dtype.itemsize and (more := file.read(dtype.itemsize - len(data) % dtype.itemsize)):
                    data += more
                yield np.frombuffer(data, dtype).astype(dtype.newbyteorder("<"), copy=False)
    except _BROKEN as error:
        raise UsageError(f"{path} cannot be read: {member[:80]!r}: {' '.join(str(error).split())[:200]}") from None


def _turned(read: Callable[[], Iterator[Array]], shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield the elements of an array in Fortran's order."""
    pieces = list(read())
    if pieces:
        yield np.concatenate(pieces).reshape(shape, order="F").ravel()
