# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which form a checkpoint has: by its content, as Lightning's .ckpt is one of torch, and .pth.tar no archive of tar."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.ckpt import read_ckpt
from probe.reading.check.weights.npz import read_npz
from probe.reading.check.weights.safetensors import read_safetensors
from probe.reading.check.weights.torch_state import read_torch
from probe.reading.check.weights.weight import Weight

Reader = Callable[[str], dict[str, Weight]]
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
    if _is_onnx(begin):
        raise UsageError(say("check.onnx", path=path))
    if begin[8:9] == b"{" and begin[:1] != b"{":
        return read_safetensors
    return {b"\x80": read_torch, b"\n": read_ckpt}.get(begin[:1])


def _is_onnx(begin: bytes) -> bool:
    """Return whether the first field is a number, 0 or followed by a text, as the version in a ModelProto."""
    is_number = begin[:1] == b"\x08"
    return is_number and (begin[1:2] == b"\x00" or begin[2:3] in (b"\x12", b"\x3a"))


def _of_members(path: str, names: list[str]) -> Reader | None:
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner or any(name.startswith("code/") for name in inner):
        raise UsageError(say("check.script", path=path))
    if "data.pkl" in inner:
        return read_torch
    return read_npz if any(name.endswith(".npy") for name in names) else None
