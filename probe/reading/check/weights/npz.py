# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the arrays of an .npz: their headers at once, the numbers piece by piece."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.weight import PIECE, Array, Weight, checked, word_of
from probe.reading.dumps.load import ArrayHeader, array_header

_BROKEN = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    MemoryError,
)


def read_npz(path: str) -> dict[str, Weight]:
    """Return the arrays of an .npz by name; raise UsageError when it is cut, none, or holds Python's objects."""
    weights = {}
    try:
        with open_file(path) as whole, zipfile.ZipFile(whole) as archive:
            for info in archive.infolist():
                name = info.filename[:-4] if info.filename.endswith(".npy") else info.filename
                with archive.open(info) as file:
                    head = array_header(file, info.file_size)
                    word = word_of(head.dtype)
                    checked(path, name, word, head.shape, info.file_size - file.tell())
                pieces: Callable[[], Iterator[Array]] = partial(_pieces, path, info.filename, head)
                if head.order == "F":
                    pieces = partial(_turned, pieces, head.shape)
                weights[name] = Weight(word, head.shape, pieces)
    except _BROKEN as error:
        if isinstance(error, UsageError) and str(error).startswith(path):
            raise
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    return weights


def _pieces(path: str, member: str, head: ArrayHeader) -> Iterator[Array]:
    """Yield the elements of a member, which may be compressed."""
    dtype = head.dtype
    try:
        with (
            open_file(path) as whole,
            zipfile.ZipFile(whole) as archive,
            archive.open(member) as file,
        ):
            file.read(head.start)
            size = PIECE - PIECE % dtype.itemsize
            while data := file.read(size):
                # a read may end inside of an element
                while cut := len(data) % dtype.itemsize:
                    more = file.read(dtype.itemsize - cut)
                    if not more:
                        break
                    data += more
                yield np.frombuffer(data, dtype).astype(dtype.newbyteorder("<"), copy=False)
    except _BROKEN as error:
        reason = reason_of(error)
        raise UsageError(say("check.member", path=path, name=member[:80], reason=reason)) from None


def _turned(read: Callable[[], Iterator[Array]], shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield the elements of an array in Fortran's order."""
    pieces = list(read())
    if pieces:
        yield np.concatenate(pieces).reshape(shape, order="F").ravel()
