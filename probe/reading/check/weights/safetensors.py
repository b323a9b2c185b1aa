# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads the parameters of a .safetensors: the description at once, the numbers piece by piece."""

from __future__ import annotations

import json
import os
from typing import Any

from probe.door import open_file
from probe.errors import UsageError
from probe.findings.sentence import say
from probe.findings.system import reason_of
from probe.reading.check.weights.weight import Weight, checked, in_file, numpy_dtype

_LONGEST_HEADER = 100_000_000
#: dtype of safetensors -> MindSpore's word
_WORDS = {
    "F64": "Float64", "F32": "Float32", "F16": "Float16", "BF16": "BFloat16", "I64": "Int64", "I32": "Int32",
    "I16": "Int16", "I8": "Int8", "U64": "UInt64", "U32": "UInt32", "U16": "UInt16", "U8": "UInt8", "BOOL": "Bool",
    "F8_E4M3": "Float8E4M3FN", "F8_E5M2": "Float8E5M2", "C64": "Complex64",
}  # fmt: skip


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


def _in_safetensors(path: str, name: str, item: Any, base: int, whole: int) -> Weight:
    """Return a parameter by its description; the elements begin at ``base`` of a file of ``whole`` bytes."""
    described = item if isinstance(item, dict) else {}
    dtype = str(described.get("dtype"))
    word = _WORDS.get(dtype, dtype)
    shown = name[:80]
    places: Any = described.get("data_offsets")
    is_place = isinstance(places, list) and len(places) == 2
    if not is_place or any(type(place) is not int for place in places):
        raise UsageError(say("check.no_place", path=path, name=shown))
    begin, end = places
    size = end - begin
    shape = checked(path, name, word, described.get("shape"), size)
    missing = base + end - whole
    if not 0 <= begin <= end or missing > 0:
        raise UsageError(say("check.cut", path=path, count=missing, name=shown))
    part = (base + begin, size)
    return Weight(word, shape, in_file(path, [part], numpy_dtype(word)))
