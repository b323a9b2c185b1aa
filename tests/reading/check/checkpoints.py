# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints of every form without MindSpore and torch."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np

from tests.reading.dumps.torch import archives

_WORDS = {"f4": "Float32", "f2": "Float16", "i4": "Int32", "i8": "Int64", "b1": "Bool"}
_SAFE = {
    "Float32": "F32",
    "Float16": "F16",
    "BFloat16": "BF16",
    "Int32": "I32",
    "Int64": "I64",
    "Bool": "BOOL",
}
_STORAGES = {
    "Float32": "FloatStorage",
    "Float16": "HalfStorage",
    "BFloat16": "BFloat16Storage",
    "Int64": "LongStorage",
}


def word(array):
    """Return MindSpore's word for a dtype."""
    return "BFloat16" if array.dtype == ml_dtypes.bfloat16 else _WORDS[array.dtype.str[1:]]


def varint(value):
    """Return a number in the wire format of protobuf."""
    found = b""
    while value > 0x7F:
        found, value = found + bytes([value & 0x7F | 0x80]), value >> 7
    return found + bytes([value])


def field(number, data):
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def ckpt_value(name, array, part=None):
    """Return one value of a .ckpt; ``part`` is a slice of its bytes."""
    data = array.tobytes() if part is None else array.tobytes()[part]
    dims = b"".join(b"\x08" + varint(size) for size in (array.shape or (0,)))
    tensor = dims + field(2, word(array).encode()) + field(3, data)
    return field(1, field(1, name.encode()) + field(2, tensor))


def write_ckpt(path, weights, slices=1):
    """Write a .ckpt, each parameter in so many values."""
    with open(path, "wb") as file:
        for name, array in weights.items():
            size = -(-array.nbytes // slices) or 1
            size += -size % array.itemsize
            for begin in range(0, max(array.nbytes, 1), size):
                file.write(ckpt_value(name, array, slice(begin, begin + size)))


def write_safetensors(path, weights):
    """Write a .safetensors."""
    header, place = {"__metadata__": {"format": "ms"}}, 0
    for name, array in weights.items():
        end = place + array.nbytes
        header[name] = {
            "dtype": _SAFE[word(array)],
            "shape": list(array.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in weights.values():
            file.write(array.tobytes())


def write_npz(path, weights, compressed=False):
    """Write an .npz."""
    (np.savez_compressed if compressed else np.savez)(path, **weights)


def state_dict(weights, wrapper=""):
    """Return the opcodes of an OrderedDict of tensors, and the bytes of its storages by their keys."""
    body, members = b"ccollections\nOrderedDict\n)R(", {}
    for key, (name, array) in enumerate(weights.items()):
        count, strides = (
            array.size,
            [stride // array.itemsize for stride in np.ascontiguousarray(array).strides],
        )
        stored = archives.storage(f"torch\n{_STORAGES[word(array)]}", str(key), count)
        body += archives.text(name) + archives.tensor(array.shape, strides[: array.ndim], 0, stored)
        members[f"archive/data/{key}"] = array.tobytes()
    # the metadata that a module's state dict carries as an attribute
    body += b"u}" + archives.text("_metadata") + b"ccollections\nOrderedDict\n)Rsb"
    if wrapper:
        other = (
            archives.name("argparse", "Namespace")
            + b")\x81}"
            + archives.text("lr")
            + b"G"
            + bytes(8)
            + b"sb"
        )
        body = b"}(" + archives.text(wrapper) + body + archives.text("args") + other + b"u"
    return body, members


def write_torch(path, weights, wrapper=""):
    """Write a .pt as torch.save writes a state dict, alone or under a key beside other objects."""
    body, members = state_dict(weights, wrapper)
    archives.write(path, body, data=None, more=list(members.items()))


WRITERS = {
    "a.ckpt": write_ckpt,
    "b.ckpt": lambda path, weights: write_ckpt(path, weights, 3),
    "a.safetensors": write_safetensors,
    "a.npz": write_npz,
    "b.npz": lambda path, weights: write_npz(path, weights, True),
    "a.pt": write_torch,
    "a.bin": lambda path, weights: write_torch(path, weights, "model"),
}
