# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the tensor in a file of ``torch.save`` without torch.

The file is a zip archive: ``data.pkl`` describes the tensor, ``data/0`` holds its numbers. The members are not
compressed, so that the numbers are read, or mapped, where they lie. ``torch_pickle`` reads the description.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.dumps.torch_pickle import MemoryOrder, NotATensor, Storage, read_layout

SUFFIX = ".pt"
#: how torch 1.5 and older wrote: a pickle without an archive
_PICKLE = b"\x80"
_ZIP = b"PK"
_LOCAL_HEADER = 30
_LOCAL_MAGIC = b"PK\x03\x04"
_MOST_DESCRIPTION = 1 << 16
_MOST_MEMBERS = 1 << 12
_MOST_DIMENSIONS = 32
#: a tensor may repeat its stored numbers (stride 0) up to so many elements
_MOST_REPEATED = 1 << 20
#: torch's dtypes that ml_dtypes has -> the one of numpy that their bytes are read in; numpy has all others by name
_NAMED = {
    "bfloat16": "u2", "float8_e4m3fn": "u1", "float8_e5m2": "u1", "float8_e4m3fnuz": "u1", "float8_e5m2fnuz": "u1",
}  # fmt: skip
#: errors of numpy and zipfile over a file that is cut or made up
_BROKEN = (
    OSError,
    ValueError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zipfile.BadZipFile,
)
_ORDERS = {b"little": "<", b"big": ">"}


class Member(NamedTuple):
    """The bytes of one member of the archive: where they begin in the file, and how many they are."""

    start: int
    size: int


class Archive(NamedTuple):
    """An archive of ``torch.save``."""

    description: bytes  # the content of ``data.pkl``
    members: dict[str, Member]  # its members by name
    prefix: str  # the folder of all members
    order: str  # the order of bytes, as numpy writes it


def read_tensor(path: str, mapped: bool = False) -> np.ndarray[Any, Any]:
    """Return the tensor that a file of ``torch.save`` holds, bfloat16 as ``ml_dtypes.bfloat16``.

    If ``mapped``, the numbers are mapped into memory. Raise UsageError when it cannot be read, or holds anything else.
    """
    with archive_file(path) as file:
        archive = open_archive(file)
        return tensor_of(file, read_layout(archive.description), archive, mapped)


@contextlib.contextmanager
def archive_file(path: str) -> Iterator[BinaryIO]:
    """Open a file of ``torch.save``; an error of reading it becomes a UsageError."""
    try:
        with open_file(path) as file:
            begin = file.read(2)
            if begin[:1] == _PICKLE:
                raise NotATensor(say("torch.old_form"))
            if begin != _ZIP:
                raise NotATensor(say("torch.no_file"))
            yield file
    except NotATensor as error:
        raise UsageError(say("error.not_read", path=path, reason=reason_of(error))) from None
    except _BROKEN as error:
        raise UsageError(
            say(
                "error.unreadable",
                path=path,
                reason=reason_of(error),
            )
        ) from None


def open_archive(
    file: BinaryIO, most_members: int = _MOST_MEMBERS, most: int = _MOST_DESCRIPTION
) -> Archive:
    """Return the parts of an archive; raise NotATensor when it is none, or larger than the given limits."""
    members = _members(file, most_members)
    heads = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(heads) != 1:
        raise NotATensor(say("torch.heads", count=len(heads)))
    prefix = heads[0].partition("/")[0]
    order = _order(file, members.get(f"{prefix}/byteorder"))
    return Archive(_content(file, members[heads[0]], most), members, prefix, order)


def tensor_of(
    file: BinaryIO, layout: MemoryOrder, archive: Archive, mapped: bool = False
) -> np.ndarray[Any, Any]:
    """Return a tensor of an archive; raise NotATensor when it is not there, or does not fit its storage."""
    base = np.dtype(archive.order + np.dtype(_NAMED.get(layout.dtype, layout.dtype)).str[1:])
    member = storage_of(layout, archive)
    stored = _stored(layout.storage, member, base.itemsize)
    _check(layout, stored)
    if not math.prod(layout.shape):
        return _named(np.empty(layout.shape, base.newbyteorder("=")), layout.dtype)
    if mapped:
        numbers: np.ndarray[Any, Any] = np.memmap(file, base, "r", member.start, (stored,))
    else:
        file.seek(member.start)
        numbers = np.frombuffer(file.read(stored * base.itemsize), base)
    strides = tuple(stride * base.itemsize for stride in layout.strides)
    found = np.lib.stride_tricks.as_strided(
        numbers[layout.offset :], layout.shape, strides, writeable=False
    )
    if not mapped or not base.isnative:
        found = np.array(found, base.newbyteorder("="), order="C")
    return _named(found, layout.dtype)


def storage_of(layout: MemoryOrder, archive: Archive) -> Member:
    """Return the bytes of the storage of a tensor; raise NotATensor when the archive lacks it."""
    member = archive.members.get(f"{archive.prefix}/data/{layout.storage.key}")
    if member is None:
        raise NotATensor(say("torch.no_member", key=layout.storage.key))
    return member


def _members(file: BinaryIO, most: int) -> dict[str, Member]:
    """Return the members of the archive; one that is compressed, encrypted, or larger than its bytes is refused."""
    size = file.seek(0, os.SEEK_END)
    found: dict[str, Member] = {}
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if len(infos) > most:
            raise NotATensor(say("torch.members", count=len(infos)))
        for info in infos:
            name = _short(info.filename)
            if info.filename in found:
                raise NotATensor(say("torch.twice", name=name))
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise NotATensor(say("torch.compressed", name=name))
            start = _start(file, info)
            if info.file_size != info.compress_size or start + info.file_size > size:
                raise NotATensor(say("torch.too_long", name=name, size=info.file_size))
            found[info.filename] = Member(start, info.file_size)
    return found


def _start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    file.seek(info.header_offset)
    header = file.read(_LOCAL_HEADER)
    if len(header) != _LOCAL_HEADER or header[:4] != _LOCAL_MAGIC:
        raise NotATensor(say("torch.no_header", name=_short(info.filename)))
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return info.header_offset + _LOCAL_HEADER + lengths


def _content(file: BinaryIO, member: Member, most: int = _MOST_DESCRIPTION) -> bytes:
    if member.size > most:
        raise NotATensor(say("torch.long_description", size=member.size))
    file.seek(member.start)
    return file.read(member.size)


def _order(file: BinaryIO, member: Member | None) -> str:
    """Return the order of bytes; torch 2.0 and older do not say it, and write the little end first."""
    if member is None:
        return "<"
    text = _content(file, member)
    if text not in _ORDERS:
        raise NotATensor(say("torch.order", order=repr(text[:20])))
    return _ORDERS[text]


def _named(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if dtype not in _NAMED:
        return array
    import ml_dtypes

    return array.view(np.dtype(getattr(ml_dtypes, dtype)))


def _stored(storage: Storage, member: Member, itemsize: int) -> int:
    """Return how many elements the storage holds; its size in the archive and in the description must agree."""
    size = storage.size if storage.dtype is None else storage.size * itemsize
    if size != member.size:
        raise NotATensor(say("torch.storage_size", found=member.size, size=size))
    return member.size // itemsize


def _check(layout: MemoryOrder, stored: int) -> None:
    """Refuse a tensor that reaches outside of its storage, or would be much larger than it."""
    if len(layout.shape) != len(layout.strides) or len(layout.shape) > _MOST_DIMENSIONS:
        raise NotATensor(
            say("torch.dimensions", shape=len(layout.shape), strides=len(layout.strides))
        )
    if min((layout.offset, *layout.shape, *layout.strides)) < 0:
        raise NotATensor(say("torch.negative"))
    count = math.prod(layout.shape)
    if not count:
        return
    last = layout.offset + sum(
        (length - 1) * stride for length, stride in zip(layout.shape, layout.strides)
    )
    if last >= stored or count > max(stored, _MOST_REPEATED):
        raise NotATensor(say("torch.shape", shape=_short(str(list(layout.shape))), stored=stored))


def _short(text: str) -> str:
    """Return a text of a file for a message: on one line, without control characters.

    >>> _short("a" * 100)[-4:], _short("../x" + chr(10))
    ('a...', '../x?')
    """
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:60])
    return shown + ("..." if len(text) > 60 else "")
