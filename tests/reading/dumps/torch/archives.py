# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes files in the form of ``torch.save`` without torch, sound and broken ones."""

from __future__ import annotations

import zipfile

PROTO, STOP, HOOKS = b"\x80\x02", b".", b"ccollections\nOrderedDict\n)R"


def text(value):
    """Return the opcode that pushes a text."""
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def number(value):
    """Return the opcode that pushes a whole number."""
    size = max((value.bit_length() + 8) // 8, 1)
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def numbers(values):
    """Return the opcodes that push a tuple of whole numbers."""
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module, word):
    """Return the opcode that imports a name."""
    return f"c{module}\n{word}\n".encode()


def storage(kind="torch\nFloatStorage", key="0", size=6):
    """Return the opcodes that name a storage."""
    return (
        b"("
        + text("storage")
        + f"c{kind}\n".encode()
        + text(key)
        + text("cpu")
        + number(size)
        + b"tQ"
    )


def tensor(shape=(2, 3), strides=(3, 1), offset=0, stored=None, hooks=HOOKS):
    """Return the opcodes of a tensor."""
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + (stored or storage())
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + b"\x89"
        + hooks
        + b"tR"
    )


def parameter(inner):
    """Return the opcodes of a Parameter around a tensor."""
    return name("torch._utils", "_rebuild_parameter") + b"(" + inner + b"\x88" + HOOKS + b"tR"


def write(
    path, body, data=b"", order=b"little", prefix="archive", compression=zipfile.ZIP_STORED, more=()
):
    """Write an archive: the description, the numbers, the order of bytes, further members."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(
            f"{prefix}/data.pkl", body if body[:1] == b"\x80" or not body else PROTO + body + STOP
        )
        if order is not None:
            archive.writestr(f"{prefix}/byteorder", order)
        if data is not None:
            archive.writestr(f"{prefix}/data/0", data)
        archive.writestr(f"{prefix}/version", b"3\n")
        for member, content in more:
            archive.writestr(member, content)
    return path
