# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Reads MindSpore's .ckpt without MindSpore: the wire format of protobuf, of one known message.

    Checkpoint: 1 = value, repeated: {1 = name, 2 = tensor: {1 = dims, repeated, 2 = dtype, 3 = bytes}}

A parameter above 512 MB has several values of one name, one after the other. Bytes are not read here, only found.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from probe.door import open_file
from probe.errors import UsageError
from probe.reading.check.weights.weight import Weight, checked, in_file, numpy_dtype

_VARINT, _LENGTH = 0, 2
#: MindSpore writes this and ten bytes at the end, with crc_check
_CHECKSUM, _CHECKSUM_SIZE = b"crc_num", 17
_LONGEST_NAME = 10_000
#: values that are no tensors: texts
_TEXT = "str"


class _Broken(Exception):
    """The file is cut, or no checkpoint."""


class _Value:
    """One value, as far as it was read."""

    def __init__(self) -> None:
        self.name, self.dtype = "", ""
        self.dims: list[int] = []
        self.part = (0, 0)


def read_ckpt(path: str) -> dict[str, Weight]:
    """Return the parameters of a .ckpt by name; raise UsageError when it is cut, encrypted, or no checkpoint."""
    found: dict[str, tuple[_Value, list[tuple[int, int]]]] = {}
    try:
        with open_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            while file.tell() < size and not _at_checksum(file, size):
                field, end = _field(file, size)
                if field != (1, _LENGTH):
                    raise _Broken("it is encrypted, or no checkpoint of MindSpore")
                value = _value(file, end)
                known = found.setdefault(value.name, (value, []))
                known[1].append(value.part)
                file.seek(end)
    except (OSError, _Broken) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from None
    if not found:
        raise UsageError(f"{path} cannot be read: it holds no parameters")
    return {name: _weight(path, name, *item) for name, item in found.items() if item[0].dtype != _TEXT}


def _weight(path: str, name: str, value: _Value, parts: list[tuple[int, int]]) -> Weight:
    size = sum(length for _, length in parts)
    dims = [] if value.dims == [0] and size else value.dims  # MindSpore's way to write a scalar
    shape = checked(path, name, value.dtype, dims, size)
    return Weight(value.dtype, shape, in_file(path, parts, numpy_dtype(value.dtype)))


def _at_checksum(file: BinaryIO, size: int) -> bool:
    place = file.tell()
    if size - place != _CHECKSUM_SIZE:
        return False
    begin = file.read(len(_CHECKSUM))
    file.seek(place)
    return begin == _CHECKSUM


def _value(file: BinaryIO, end: int) -> _Value:
    """Read one value: the message of a name and a tensor."""
    value, inner = _Value(), end
    while file.tell() < end:
        field, stop = _field(file, end)
        if field == (1, _LENGTH):
            value.name = _text(file, stop)
        elif field == (2, _LENGTH):
            inner = stop
            while file.tell() < inner:
                _tensor_field(file, inner, value)
        elif field[1] == _LENGTH:
            file.seek(stop)
    if not value.name or not value.dtype:
        raise _Broken("it holds a value without a name or dtype, such as a map parameter")
    return value


def _tensor_field(file: BinaryIO, end: int, value: _Value) -> None:
    field, stop = _field(file, end)
    if field == (1, _VARINT):
        value.dims.append(stop)
    elif field == (1, _LENGTH):
        while file.tell() < stop:
            value.dims.append(_varint(file))
    elif field == (2, _LENGTH):
        value.dtype = _text(file, stop)
    elif field == (3, _LENGTH):
        value.part = file.tell(), stop - file.tell()
        file.seek(stop)
    else:
        raise _Broken("it is no checkpoint of MindSpore")


def _field(file: BinaryIO, end: int) -> tuple[tuple[int, int], int]:
    """Return the number and kind of a field, and where it ends; of a number its value."""
    key = _varint(file)
    number, kind = key >> 3, key & 7
    if kind == _VARINT:
        return (number, kind), _varint(file)
    if kind != _LENGTH:
        raise _Broken("it is encrypted, or no checkpoint of MindSpore")
    length = _varint(file)
    stop = file.tell() + length
    if stop > end:
        raise _Broken(f"it is cut: {stop - end} bytes are missing")
    return (number, kind), stop


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            raise _Broken("it is cut")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _Broken("it is no checkpoint of MindSpore")


def _text(file: BinaryIO, stop: int) -> str:
    length = stop - file.tell()
    if length > _LONGEST_NAME:
        raise _Broken("it is no checkpoint of MindSpore")
    return file.read(length).decode("utf-8", "backslashreplace")
