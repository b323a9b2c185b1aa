# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the parameters of MindSpore's .ckpt without MindSpore: the wire format of protobuf, of one known message.

    Checkpoint: 1 = value, repeated: {1 = name, 2 = tensor: {1 = dims, repeated, 2 = dtype, 3 = bytes}}

A parameter above 512 MB has several values of one name, one after the other. Bytes are not read here, only found.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.weight import Weight, checked, in_file, numpy_dtype

_VARINT = 0
_LENGTH = 2
#: MindSpore writes this and ten bytes at the end, with crc_check
_CHECKSUM = b"crc_num"
_CHECKSUM_SIZE = 17
_LONGEST_NAME = 10_000
#: values that are no tensors: texts
_TEXT = "str"


class _Broken(Exception):
    """The file is cut, or no checkpoint."""


@dataclass
class _Value:
    """One value of a Checkpoint."""

    name: str = ""
    dtype: str = ""
    dims: list[int] = field(default_factory=list)
    part: tuple[int, int] = (0, 0)  # where its bytes are: offset, size


class _Field(NamedTuple):
    """The head of a field of a message."""

    number: int
    kind: int
    stop: int  # the place behind it; of a number its value


def read_ckpt(path: str) -> dict[str, Weight]:
    """Return the parameters of a .ckpt by name; raise UsageError when it is cut, encrypted, or no checkpoint."""
    values: dict[str, list[_Value]] = {}  # name -> the values of this name
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            while file.tell() < size and not _at_checksum(file, size):
                number, kind, stop = _head(file, size)
                if (number, kind) != (1, _LENGTH):
                    raise _Broken(say("door.encrypted"))
                value = _value(file, stop)
                values.setdefault(value.name, []).append(value)
                file.seek(stop)
    except (OSError, _Broken) as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    if not values:
        raise UsageError(say("check.no_weights", path=path))
    return {name: _weight(path, own) for name, own in values.items() if own[0].dtype != _TEXT}


def _weight(path: str, values: list[_Value]) -> Weight:
    """Return the parameter that values of one name hold; the first tells its shape."""
    first = values[0]
    parts = [value.part for value in values]
    size = sum(length for _, length in parts)
    dims = [] if first.dims == [0] and size else first.dims  # MindSpore's way to write a scalar
    shape = checked(path, first.name, first.dtype, dims, size)
    return Weight(first.dtype, shape, in_file(path, parts, numpy_dtype(first.dtype)))


def _at_checksum(file: BinaryIO, size: int) -> bool:
    place = file.tell()
    if size - place != _CHECKSUM_SIZE:
        return False
    begin = file.read(len(_CHECKSUM))
    file.seek(place)
    return begin == _CHECKSUM


def _value(file: BinaryIO, end: int) -> _Value:
    value = _Value()
    while file.tell() < end:
        number, kind, stop = _head(file, end)
        if (number, kind) == (1, _LENGTH):
            value.name = _text(file, stop)
        elif (number, kind) == (2, _LENGTH):
            while file.tell() < stop:
                _tensor_field(file, stop, value)
        elif kind == _LENGTH:
            file.seek(stop)
    if not value.name or not value.dtype:
        raise _Broken(say("door.nameless"))
    return value


def _tensor_field(file: BinaryIO, end: int, value: _Value) -> None:
    number, kind, stop = _head(file, end)
    if (number, kind) == (1, _VARINT):
        value.dims.append(stop)
    elif (number, kind) == (1, _LENGTH):
        while file.tell() < stop:
            value.dims.append(_varint(file))
    elif (number, kind) == (2, _LENGTH):
        value.dtype = _text(file, stop)
    elif (number, kind) == (3, _LENGTH):
        begin = file.tell()
        value.part = (begin, stop - begin)
        file.seek(stop)
    else:
        raise _Broken(say("door.no_ckpt"))


def _head(file: BinaryIO, end: int) -> _Field:
    """Return the head of the field that begins here, of a message that ends at ``end``."""
    key = _varint(file)
    number = key >> 3
    kind = key & 7
    if kind == _VARINT:
        return _Field(number, kind, _varint(file))
    if kind != _LENGTH:
        raise _Broken(say("door.encrypted"))
    length = _varint(file)
    stop = file.tell() + length
    if stop > end:
        raise _Broken(say("door.cut_by", count=stop - end))
    return _Field(number, kind, stop)


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            raise _Broken(say("door.cut"))
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _Broken(say("door.no_ckpt"))


def _text(file: BinaryIO, stop: int) -> str:
    length = stop - file.tell()
    if length > _LONGEST_NAME:
        raise _Broken(say("door.no_ckpt"))
    return file.read(length).decode("utf-8", "backslashreplace")
