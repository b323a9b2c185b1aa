# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The check of statistics: those of the device beside those of the host, and both beside the truth in float64."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from probe.doctor.bench import FAILED, OK, WARNING, Bench, CheckResult
from probe.measure.tensor_reader import Array, to_numpy

_DTYPES = "bool int8 int32 int64 uint8 float16 bfloat16 float32 float64 complex64"
#: a small tensor is copied to the host, a large one is reduced on the device
_SIZES = (12, 3000)
#: the greatest error of Mean, relative to the largest magnitude, and of Norm, relative to itself
_BOUNDS = {"host": 2e-7, "device": 1e-6}


def numbers(bench: Bench) -> CheckResult:
    """Measure tensors of every dtype on the host and on the device."""
    tensors = _tensors()
    lost = [name for name, tensor in tensors.items() if not _can_be_copied(tensor)]
    tensors = {name: tensor for name, tensor in tensors.items() if name not in lost}
    greatest, wrong = {}, []
    for measure, bound in _BOUNDS.items():
        settings = {"level": "debug", "measure": measure, "precision": "low"}
        recorded = bench.record(f"numbers-{measure}", lambda: _save(tensors), **settings)
        if recorded.error:
            return CheckResult(FAILED, f"measuring on the {measure} fails: {recorded.error}")
        errors = {}
        for name, tensor in tensors.items():
            record = recorded.data.get(f"{name}.0.debug")
            if not record:
                return CheckResult(FAILED, f"measuring on the {measure} has no numbers for {name}")
            errors[name] = _error(record, to_numpy(tensor))
        greatest[measure] = max(errors.values())
        wrong += [f"{name} on the {measure}" for name, error in errors.items() if not error <= bound]
    details = {"tensors": list(tensors), "greatest error": greatest, "bounds": _BOUNDS}
    details.update({"wrong": wrong, "not copied": lost})
    if wrong:
        return CheckResult(FAILED, f"wrong numbers of {len(wrong)} tensors: {', '.join(wrong[:6])}", details)
    if lost:
        return CheckResult(WARNING, f"MindSpore's own copy of a tensor has other values: {', '.join(lost)}", details)
    told = ", ".join(f"{greatest[side]:.1g} on the {side} (allowed {bound:g})" for side, bound in _BOUNDS.items())
    fact = f"{len(tensors)} tensors measured on the {bench.device} and the host; error at most {told}"
    return CheckResult(OK, fact, details)


def _can_be_copied(tensor: Any) -> bool:
    """Return whether MindSpore's copy of a tensor has its values: no measuring of copies can be right otherwise."""
    from mindspore.ops.auto_generate import copy_op

    return to_numpy(copy_op(tensor)).tobytes() == to_numpy(tensor).tobytes()


def _save(tensors: dict[str, Any]) -> None:
    from probe.debugger import PrecisionDebugger

    for name, tensor in tensors.items():
        PrecisionDebugger.save(tensor, name, save_backward=False)


def _tensors() -> dict[str, Any]:
    import mindspore

    found = {}
    random = np.random.RandomState(3)
    for size in _SIZES:
        for name in _DTYPES.split():
            kind = np.dtype(np.float32 if name == "bfloat16" else name)
            array = random.randint(0 if kind.kind in "ub" else -99, 2 if kind.kind == "b" else 99, size)
            array = array.astype(kind) if kind.kind in "uib" else (array / 7).astype(kind)
            found[f"{name}-{size}"] = mindspore.Tensor(array, getattr(mindspore, "bool_" if name == "bool" else name))
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
        return 0.0 if _same(record["Max"], wide.max()) and _same(record["Norm"], np.linalg.norm(wide)) else math.inf
    largest, norm = float(np.abs(wide).max()), float(np.linalg.norm(wide))
    ends = [abs(record[key] - float(end)) for key, end in (("Max", wide.max()), ("Min", wide.min()))]
    mean: float = abs(record["Mean"] - float(wide.mean())) / largest
    return float(max(mean, abs(record["Norm"] - norm) / norm, math.inf if max(ends) > largest * 1e-7 else 0.0))


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (math.isnan(a) and math.isnan(b))
