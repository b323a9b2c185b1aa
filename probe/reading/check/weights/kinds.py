# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which form a checkpoint has: by its content, as Lightning's .ckpt is one of torch, and .pth.tar no archive of tar.

It reads .safetensors and .npz itself: the description at once, the numbers piece by piece. It reads MindSpore's .ckpt
without MindSpore: the wire format of protobuf, of one known message.

    Checkpoint: 1 = value, repeated: {1 = name, 2 = tensor: {1 = dims, repeated, 2 = dtype, 3 = bytes}}

A parameter above 512 MB has several values of one name, one after the other. Bytes are not read here, only found.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.torch_state import read_torch
from probe.reading.check.weights.weight import (
    PIECE,
    Array,
    Weight,
    checked,
    in_file,
    numpy_dtype,
    word_of,
)
from probe.reading.dumps.load import ArrayHeader, array_header

_VARINT = 0
_LENGTH = 2
#: MindSpore writes this and ten bytes at the end, with crc_check
_CHECKSUM = b"crc_num"
_CHECKSUM_SIZE = 17
_LONGEST_NAME = 10_000
#: values that are no tensors: texts
_TEXT = "str"
_LONGEST_HEADER = 100_000_000
#: dtype of safetensors -> MindSpore's word
_WORDS = {
    "F64": "Float64", "F32": "Float32", "F16": "Float16", "BF16": "BFloat16", "I64": "Int64", "I32": "Int32",
    "I16": "Int16", "I8": "Int8", "U64": "UInt64", "U32": "UInt32", "U16": "UInt16", "U8": "UInt8", "BOOL": "Bool",
    "F8_E4M3": "Float8E4M3FN", "F8_E5M2": "Float8E5M2", "C64": "Complex64",
}  # fmt: skip
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
Reader = Callable[[str], dict[str, Weight]]


class _Broken(Exception):
    """The file is cut, or no checkpoint."""


class _Value:
    def __init__(self) -> None:
        self.name = ""
        self.dtype = ""
        self.dims: list[int] = []
        self.part = (0, 0)


def read_ckpt(path: str) -> dict[str, Weight]:
    """Return the parameters of a .ckpt by name; raise UsageError when it is cut, encrypted, or no checkpoint."""
    found: dict[str, tuple[_Value, list[tuple[int, int]]]] = {}
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            while file.tell() < size and not _at_checksum(file, size):
                field, end = _field(file, size)
                if field != (1, _LENGTH):
                    raise _Broken(say("door.encrypted"))
                value = _value(file, end)
                known = found.setdefault(value.name, (value, []))
                known[1].append(value.part)
                file.seek(end)
    except (OSError, _Broken) as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    if not found:
        raise UsageError(say("check.no_weights", path=path))
    return {
        name: _weight(path, name, *item) for name, item in found.items() if item[0].dtype != _TEXT
    }


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
    value = _Value()
    inner = end
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
        raise _Broken(say("door.nameless"))
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
        raise _Broken(say("door.no_ckpt"))


def _field(file: BinaryIO, end: int) -> tuple[tuple[int, int], int]:
    """Return the number and kind of a field, and where it ends; of a number its value."""
    key = _varint(file)
    number = key >> 3
    kind = key & 7
    if kind == _VARINT:
        return (number, kind), _varint(file)
    if kind != _LENGTH:
        raise _Broken(say("door.encrypted"))
    length = _varint(file)
    stop = file.tell() + length
    if stop > end:
        raise _Broken(say("door.cut_by", count=stop - end))
    return (number, kind), stop


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


def read_safetensors(path: str) -> dict[str, Weight]:
    """Return the parameters of a .safetensors by name; raise UsageError when it is cut, or none."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, _LONGEST_HEADER):
                raise ValueError(say("door.no_safetensors"))
            header = json.loads(file.read(length).decode("utf-8"))
    except RecursionError:
        raise UsageError(say("error.too_deep", path=path)) from None
    except (OSError, ValueError) as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    if not isinstance(header, dict):
        raise UsageError(say("check.no_safetensors", path=path))
    return {
        name: _in_safetensors(path, name, item, 8 + length, size)
        for name, item in header.items()
        if name != "__metadata__"
    }


def _in_safetensors(path: str, name: str, item: Any, base: int, size: int) -> Weight:
    item = item if isinstance(item, dict) else {}
    word = _WORDS.get(str(item.get("dtype")), str(item.get("dtype")))
    places = item.get("data_offsets")
    if (
        not isinstance(places, list)
        or len(places) != 2
        or any(type(place) is not int for place in places)
    ):
        raise UsageError(say("check.no_place", path=path, name=name[:80]))
    begin, end = places
    shape = checked(path, name, word, item.get("shape"), end - begin)
    if not 0 <= begin <= end <= size - base:
        raise UsageError(say("check.cut", path=path, count=base + end - size, name=name[:80]))
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
                read = partial(_turned, read, head.shape) if head.order == "F" else read
                found[name] = Weight(word, head.shape, read)
    except _BROKEN as error:
        if isinstance(error, UsageError) and str(error).startswith(path):
            raise
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    return found


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
                while len(data) % dtype.itemsize and (
                    more := file.read(dtype.itemsize - len(data) % dtype.itemsize)
                ):
                    data += more
                yield np.frombuffer(data, dtype).astype(dtype.newbyteorder("<"), copy=False)
    except _BROKEN as error:
        raise UsageError(
            say(
                "check.member",
                path=path,
                name=member[:80],
                reason=reason_of(error),
            )
        ) from None


def _turned(read: Callable[[], Iterator[Array]], shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield the elements of an array in Fortran's order."""
    pieces = list(read())
    if pieces:
        yield np.concatenate(pieces).reshape(shape, order="F").ravel()


#: endings of checkpoints, for files whose content is cut, and for those that are missing
_BY_ENDING: dict[str, Reader] = {
    ".ckpt": read_ckpt,
    ".safetensors": read_safetensors,
    ".npz": read_npz,
    ".pt": read_torch,
    ".pth": read_torch,
    ".bin": read_torch,
    ".tar": read_torch,
    ".onnx": read_torch,
}


def is_checkpoint(path: str) -> bool:
    """Return whether a path names a checkpoint, by its content or its ending; a run.json is none."""
    return not os.path.isdir(path) and (
        _of_ending(path) is not None or _of_content(path) is not None
    )


def reader_of(path: str) -> Reader:
    """Return the function that reads a checkpoint; raise UsageError for a form that is not read."""
    return _of_content(path) or _of_ending(path) or read_torch


def _of_ending(path: str) -> Reader | None:
    return _BY_ENDING.get(os.path.splitext(path)[1].lower())


def _of_content(path: str) -> Reader | None:
    """Return the reader by the first bytes; None where they do not tell."""
    try:
        with open_file(path) as file:
            begin = file.read(16)
            if begin[:2] == b"PK":
                return _of_members(path, zipfile.ZipFile(file).namelist())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(say("error.unreadable", path=path, reason=reason_of(error))) from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return None
    if begin[:2] == b"\x08\x00" or (begin[:1] == b"\x08" and begin[2:3] in (b"\x12", b"\x3a")):
        raise UsageError(say("check.onnx", path=path))
    if begin[8:9] == b"{" and begin[:1] != b"{":
        return read_safetensors
    return {b"\x80": read_torch, b"\n": read_ckpt}.get(begin[:1])


def _of_members(path: str, names: list[str]) -> Reader | None:
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner or any(name.startswith("code/") for name in inner):
        raise UsageError(say("check.script", path=path))
    if "data.pkl" in inner:
        return read_torch
    return read_npz if any(name.endswith(".npy") for name in names) else None
