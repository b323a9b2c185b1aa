# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One parameter of a checkpoint, read piece by piece: a file of any size needs little memory."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import said_of, say
from probe.reading.dumps.load import NAMED_DTYPES

Array = np.ndarray[Any, Any]

#: bytes that are read at once
PIECE = 1 << 22
#: most dimensions of a parameter; more is a broken file
_MOST_DIMENSIONS = 32
#: dtype in words -> numpy's
DTYPES = {
    "Float64": "<f8", "Float32": "<f4", "Float16": "<f2", "Int64": "<i8", "Int32": "<i4", "Int16": "<i2", "Int8": "<i1",
    "UInt64": "<u8", "UInt32": "<u4", "UInt16": "<u2", "UInt8": "<u1", "Bool": "?", "Complex64": "<c8",
    "Complex128": "<c16",
}  # fmt: skip


class Weight(NamedTuple):
    """One parameter."""

    dtype: str  # its dtype in MindSpore's words
    shape: tuple[int, ...]
    #: yields its elements in C order, as flat arrays; None where only checksums are known
    pieces: Callable[[], Iterator[Array]] | None
    crc: str = ""  # the CRC-32 of its bytes, where it is known without reading
    sum: int = -1  # the sum of its bits, likewise

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return self.size * numpy_dtype(self.dtype).itemsize

    def array(self) -> Array:
        """Return all elements: for a parameter that is small enough."""
        pieces = list(self.pieces()) if self.pieces is not None else []
        flat = np.concatenate(pieces) if pieces else np.zeros(0, numpy_dtype(self.dtype))
        return flat.reshape(self.shape)

    def digest(self) -> Weight:
        """Return it with its checksums."""
        if self.crc or self.pieces is None:
            return self
        crc = 0
        total = 0
        width = min(numpy_dtype(self.dtype).itemsize, 8)
        sum_dtype = np.uint32 if width < 8 else np.uint64
        modulus = 2**32 if width < 8 else 2**64
        for piece in self.pieces():
            crc = zlib.crc32(piece.view(np.uint8).data, crc)
            bits = piece.view(f"u{width}")
            total += int(np.add.reduce(bits, dtype=sum_dtype))
        return self._replace(crc=f"{crc:08x}", sum=total % modulus)


def numpy_dtype(word: str) -> np.dtype[Any]:
    """Return numpy's dtype; raise UsageError for one that is not known."""
    if word in NAMED_DTYPES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, NAMED_DTYPES[word]))
    if word not in DTYPES:
        raise UsageError(say("check.no_dtype", dtype=word[:40]))
    return np.dtype(DTYPES[word])


def word_of(dtype: np.dtype[Any]) -> str:
    """Return MindSpore's word for a dtype of numpy; raise UsageError for one that is not known.

    >>> word_of(np.dtype("f4"))
    'Float32'
    """
    little_endian = dtype.newbyteorder("<")
    for word, name in DTYPES.items():
        if np.dtype(name) == little_endian:
            return word
    for word, name in NAMED_DTYPES.items():
        if name == dtype.name:
            return word
    raise UsageError(say("check.no_dtype", dtype=str(dtype)[:40]))


def in_file(
    path: str, parts: list[tuple[int, int]], dtype: np.dtype[Any]
) -> Callable[[], Iterator[Array]]:
    """Return the pieces of a parameter whose bytes lie in parts of a file: (offset, size)."""

    def pieces() -> Iterator[Array]:
        rest = b""
        with open_file(path) as file:
            for offset, size in parts:
                file.seek(offset)
                left = size
                while left > 0:
                    data = rest + file.read(min(left, PIECE))
                    left -= len(data) - len(rest)
                    if len(data) == len(rest):
                        raise UsageError(say("check.bytes_missing", path=path, count=left))
                    whole = len(data) - len(data) % dtype.itemsize
                    rest = data[whole:]
                    if whole:
                        yield np.frombuffer(data[:whole] if rest else data, dtype)

    return pieces


def checked(path: str, name: str, word: str, shape: Any, size: int) -> tuple[int, ...]:
    """Return a shape; raise UsageError for a parameter whose bytes do not fit it."""
    is_shape = isinstance(shape, (list, tuple)) and len(shape) <= _MOST_DIMENSIONS
    shown = name[:80]
    if not is_shape or any(type(length) is not int or length < 0 for length in shape):
        raise UsageError(say("check.no_shape", path=path, name=shown))
    try:
        itemsize = numpy_dtype(word).itemsize
    except UsageError as error:
        reason = said_of(error)
        raise UsageError(say("check.member", path=path, name=shown, reason=reason)) from None
    wanted = math.prod(shape) * itemsize
    if wanted != size:
        raise UsageError(say("check.bytes", path=path, name=shown, size=size, wanted=wanted))
    return tuple(shape)
