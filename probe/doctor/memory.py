# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The checks of tensors: reading each dtype and layout, and statistics of the device beside those of the host.

Tensors are read by pointer and by MindSpore's own way. On a device also copies that it makes, as probe has them made,
and tensors that it has written. Statistics are compared with the truth in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult
from probe.findings.sentence import say
from probe.findings.system import foreign
from probe.measure.tensor_reader import Array, TensorReader, to_numpy

_DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16"
#: kind of fault -> the sentence about it, the most serious first
_FAILURES = {
    "wrong": "doctor.wrong",
    "copied": "doctor.copied",
    "changed": "doctor.changed",
    "lost": "doctor.lost",
}
_MEASURED = "bool int8 int32 int64 uint8 float16 bfloat16 float32 float64 complex64"
_SIZES = (12, 3000)  # a small tensor is copied to the host, a large one is reduced on the device
#: the greatest error of Mean, relative to the largest magnitude, and of Norm, relative to itself
_BOUNDS = {"host": 2e-7, "device": 1e-6}
_SIDES = {"host": say("doctor.host"), "device": say("doctor.device_side")}


def memory(bench: Bench) -> CheckResult:
    """Read tensors of every dtype and layout, and compare with ``asnumpy`` and with the values that were put in."""
    reader = TensorReader()
    count = 0
    dtypes = set()
    wrong: dict[str, list[str]] = {"lost": [], "wrong": [], "copied": [], "changed": []}
    for dtype, layout, tensor, expected in _tensors():
        count += 1
        dtypes.add(dtype)
        for fault in _faults(bench, reader, tensor, expected):
            wrong[fault].append(f"{dtype} {layout}")
    details = {"tensors": count, "dtypes": sorted(dtypes), **wrong, "pointers": reader.is_direct}
    said = say("doctor.tensors", count=count, dtypes=len(dtypes))
    for fault, key in _FAILURES.items():
        if wrong[fault]:
            facts = {"number": len(wrong[fault]), "said": said, "names": wrong[fault][:5]}
            if fault in ("copied", "changed"):
                facts["device"] = bench.device
            result = WARNING if fault == "lost" else FAILED
            return CheckResult(result, say(key, **facts), details)
    if bench.device != "CPU":
        fact = say("doctor.on_device", said=said, device=bench.device)
        return CheckResult(OK, fact, details)
    if not reader.is_direct:
        return CheckResult(WARNING, say("doctor.slow", said=said), details)
    return CheckResult(OK, say("doctor.bytes", said=said), details)


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


def numbers(bench: Bench) -> CheckResult:
    """Measure tensors of every dtype on the host and on the device."""
    from mindspore.ops.auto_generate import copy_op

    tensors = _measured()
    # no measuring of copies can be right where MindSpore's copy of a tensor has other values
    lost = [
        name
        for name, it in tensors.items()
        if to_numpy(copy_op(it)).tobytes() != to_numpy(it).tobytes()
    ]
    tensors = {name: tensor for name, tensor in tensors.items() if name not in lost}
    greatest = {}
    wrong = []
    for measure, bound in _BOUNDS.items():
        settings = {"level": "debug", "measure": measure, "precision": "low"}
        recorded = bench.record(f"numbers-{measure}", lambda: _save(tensors), **settings)
        if recorded.error:
            return CheckResult(
                FAILED, say("doctor.fails", side=_SIDES[measure], reason=foreign(recorded.error))
            )
        errors = {}
        for name, tensor in tensors.items():
            record = recorded.data.get(f"{name}.0.debug")
            if not record:
                return CheckResult(FAILED, say("doctor.lacks", side=_SIDES[measure], name=name))
            errors[name] = _error(record, to_numpy(tensor))
        greatest[measure] = max(errors.values())
        wrong += [
            say("doctor.measured_on", name=name, side=_SIDES[measure])
            for name, error in errors.items()
            if not error <= bound
        ]
    details = {"tensors": list(tensors), "greatest error": greatest, "bounds": _BOUNDS}
    details.update({"wrong": [str(item) for item in wrong], "not copied": lost})
    if wrong:
        said = say("doctor.wrong_numbers", count=len(wrong), names=wrong[:6])
        return CheckResult(FAILED, said, details)
    if lost:
        return CheckResult(WARNING, say("doctor.copies", names=lost), details)
    errors_said = [
        say("doctor.error_on", error=greatest[side], side=_SIDES[side], bound=bound)
        for side, bound in _BOUNDS.items()
    ]
    facts = {"count": len(tensors), "device": bench.device, "errors": errors_said}
    return CheckResult(OK, say("doctor.numbers", **facts), details)


def _save(tensors: dict[str, Any]) -> None:
    from probe.debugger import PrecisionDebugger

    for name, tensor in tensors.items():
        PrecisionDebugger.save(tensor, name, save_backward=False)


def _measured() -> dict[str, Any]:
    import mindspore

    found = {}
    random = np.random.RandomState(3)
    for size in _SIZES:
        for name in _MEASURED.split():
            kind = np.dtype(np.float32 if name == "bfloat16" else name)
            array = random.randint(
                0 if kind.kind in "ub" else -99, 2 if kind.kind == "b" else 99, size
            )
            array = array.astype(kind) if kind.kind in "uib" else (array / 7).astype(kind)
            found[f"{name}-{size}"] = mindspore.Tensor(
                array, getattr(mindspore, "bool_" if name == "bool" else name)
            )
        for name, value in (("NaN", math.nan), ("Inf", math.inf)):
            array = random.randn(size).astype(np.float32)
            array[3] = value
            found[f"{name}-{size}"] = mindspore.Tensor(array)
    return found


def _error(record: Any, array: Array) -> float:
    """Return the error of a record; infinite where a number has to be exact and is not."""
    if array.dtype.kind == "b":
        exact = (record["Max"], record["Min"], record["Mean"], record["Norm"])
        return 0.0 if exact == (bool(array.any()), bool(array.all()), None, None) else math.inf
    if array.dtype.kind == "c":
        array = np.abs(array.astype(np.complex128))
    elif array.dtype == ml_dtypes.bfloat16:
        array = array.astype(np.float32)
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        return (
            0.0
            if _same(record["Max"], wide.max()) and _same(record["Norm"], np.linalg.norm(wide))
            else math.inf
        )
    largest = float(np.abs(wide).max())
    norm = float(np.linalg.norm(wide))
    ends = [
        abs(record[key] - float(end)) for key, end in (("Max", wide.max()), ("Min", wide.min()))
    ]
    mean: float = abs(record["Mean"] - float(wide.mean())) / largest
    return float(
        max(
            mean, abs(record["Norm"] - norm) / norm, math.inf if max(ends) > largest * 1e-7 else 0.0
        )
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (math.isnan(a) and math.isnan(b))
