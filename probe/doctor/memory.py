# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The check of reading tensors: each dtype and layout, by pointer and by MindSpore's own way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from probe.doctor.finding import FAILED, OK, WARNING, Bench, Finding
from probe.measure.tensor_reader import Array, TensorReader, to_numpy

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16"


def memory(bench: Bench) -> Finding:
    """Read tensors of every dtype and layout, and compare with ``asnumpy`` and with the values that were put in."""
    reader = TensorReader()
    count, wrong, lost, dtypes = 0, [], [], set()
    for dtype, layout, tensor, expected in _tensors():
        found, count = reader(tensor), count + 1
        dtypes.add(dtype)
        if not _equal(to_numpy(tensor), expected):
            lost.append(f"{dtype} {layout}")
        elif not _equal(found, expected):
            wrong.append(f"{dtype} {layout}")
    details = {"tensors": count, "dtypes": sorted(dtypes), "wrong": wrong, "lost": lost, "pointers": reader.is_direct}
    said = f"{count} tensors of {len(dtypes)} dtypes, also views, transposed and empty ones"
    if wrong:
        return Finding(
            FAILED, f"{len(wrong)} of {said} are not read as asnumpy reads them: {', '.join(wrong[:5])}", details
        )
    if lost:
        return Finding(WARNING, f"MindSpore's own asnumpy loses {len(lost)} of {said}: {', '.join(lost[:5])}", details)
    if bench.device != "CPU":
        return Finding(OK, f"{said}: asnumpy gives the values that were put in (pointers are for CPU only)", details)
    if not reader.is_direct:
        return Finding(WARNING, f"{said} are read by asnumpy, as pointers do not show their values: slower", details)
    return Finding(OK, f"{said}: the bytes at the pointer are those of asnumpy", details)


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
