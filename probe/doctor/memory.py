# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The check of reading tensors: each dtype and layout, by pointer and by MindSpore's own way.

On a device also copies that it makes, as probe has them made, and tensors that it has written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult
from probe.measure.tensor_reader import Array, TensorReader, to_numpy

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16"
#: kind of fault -> the text about it, the most serious first
_FAILURES = {
    "wrong": "{number} of {said} are not read as asnumpy reads them",
    "copied": "{number} of {said}: a copy that the {device} makes has other values on the host",
    "changed": "{number} of {said}: the host does not see the values that the {device} writes into a tensor",
    "lost": "MindSpore's own asnumpy loses {number} of {said}",
}


def memory(bench: Bench) -> CheckResult:
    """Read tensors of every dtype and layout, and compare with ``asnumpy`` and with the values that were put in."""
    reader = TensorReader()
    count, dtypes = 0, set()
    wrong: dict[str, list[str]] = {"lost": [], "wrong": [], "copied": [], "changed": []}
    for dtype, layout, tensor, expected in _tensors():
        count += 1
        dtypes.add(dtype)
        for fault in _faults(bench, reader, tensor, expected):
            wrong[fault].append(f"{dtype} {layout}")
    details = {"tensors": count, "dtypes": sorted(dtypes), **wrong, "pointers": reader.is_direct}
    said = f"{count} tensors of {len(dtypes)} dtypes, also views, transposed and empty ones"
    for fault, text in _FAILURES.items():
        if wrong[fault]:
            told = text.format(number=len(wrong[fault]), said=said, device=bench.device)
            result = WARNING if fault == "lost" else FAILED
            return CheckResult(result, f"{told}: {', '.join(wrong[fault][:5])}", details)
    if bench.device != "CPU":
        fact = f"{said}: read by the host, copied by the {bench.device} and written by it, all have their values"
        return CheckResult(OK, fact, details)
    if not reader.is_direct:
        slow = f"{said} are read by asnumpy, as pointers do not show their values: slower"
        return CheckResult(WARNING, slow, details)
    return CheckResult(OK, f"{said}: the bytes at the pointer are those of asnumpy", details)


def _faults(bench: Bench, reader: TensorReader, tensor: Any, expected: Array) -> Iterator[str]:
    """Yield the names of the readings of a tensor that have other values; see ``_FAILURES``."""
    import mindspore
    from mindspore.ops.auto_generate import copy_op

    if not _equal(to_numpy(tensor), expected):
        yield "lost"
    elif not _equal(reader(tensor), expected):
        yield "wrong"
    if bench.device == "CPU":
        return  # a tensor that was put in may still be on the host: only operations bring it to a device
    if not _equal(reader(copy_op(tensor)), expected):
        yield "copied"
    changed = mindspore.Tensor(np.zeros(expected.shape, np.float32), tensor.dtype)
    changed.copy_(tensor)
    if not _equal(reader(changed), expected):
        yield "changed"


def _equal(found: Array, expected: Array) -> bool:
    same = (found.dtype, found.shape) == (expected.dtype, expected.shape)
    return same and found.tobytes() == expected.tobytes()


def _tensors() -> Iterator[tuple[str, str, Any, Array]]:
    """Yield dtype, layout, tensor and its values."""
    import mindspore

    for name in _DTYPES.split():
        kind = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
        array = (np.arange(24).reshape(4, 6) % 5 - (0 if kind.kind in "ub" else 2)).astype(kind)
        dtype = getattr(mindspore, "bool_" if name == "bool" else name)
        source = array.astype(np.float32) if name == "bfloat16" else array
        tensor = mindspore.Tensor(source, dtype)
        yield name, "plain", tensor, array
        yield name, "empty", mindspore.Tensor(source[:0], dtype), array[:0]
        yield name, "0-d", mindspore.Tensor(source[1, 2], dtype), array[1, 2].reshape(())
        yield name, "Parameter", mindspore.Parameter(tensor, name=f"of_{name}"), array
        yield name, "rows", tensor[1:3], array[1:3]
        yield name, "columns", tensor[:, 2:4], array[:, 2:4]
        yield name, "transposed", tensor.transpose(1, 0), array.transpose(1, 0)
