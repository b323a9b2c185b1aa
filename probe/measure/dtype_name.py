# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The name of a dtype in a record, by MindSpore's own object: other packages replace the text that ``str`` gives."""

from __future__ import annotations

import functools
from typing import Any

#: attribute of MindSpore -> the name in a record
_NAMES = {
    "bool_": "Bool", "int4": "Int4", "qint4x2": "Int4",
    "int8": "Int8", "int16": "Int16", "int32": "Int32", "int64": "Int64",
    "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "float16": "Float16", "float32": "Float32", "float64": "Float64", "bfloat16": "BFloat16",
    "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2", "hifloat8": "HiFloat8",
    "complex64": "Complex64", "complex128": "Complex128",
}  # fmt: skip


@functools.cache
def _known() -> dict[Any, str]:
    from mindspore.common import dtype

    return {getattr(dtype, name): text for name, text in _NAMES.items() if hasattr(dtype, name)}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, such as "Float32"; of one that is not known its text."""
    found = _known().get(dtype)
    return str(dtype) if found is None else found
