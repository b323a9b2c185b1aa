# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The records of arrays for which MindSpore has written no statistics."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np

from probe.reading.dumps.kernels.names import dtype_name
from probe.reading.dumps.load import read_array
from probe.reading.dumps.values import NUMBERS, Record


def record_of(path: str, dtype: str) -> Record:
    """Return the record of the array in a file; dtype is the one that its name has, or "".

    Raise OSError or ValueError when it cannot be read.
    """
    array = read_array(path, mapped=os.lstat(path).st_size > 1 << 20)
    name = dtype_name(dtype or array.dtype.name)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    return {"type": "mindspore.Tensor", "dtype": name, "shape": list(array.shape), **numbers(np.asarray(array))}


def numbers(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return Max, Min, Mean and Norm of an array, and the counts of NaN and Inf where there are some.

    >>> numbers(np.array([3.0, 4.0], np.float32))
    {'Max': 4.0, 'Min': 3.0, 'Mean': 3.5, 'Norm': 5.0}
    """
    kind = array.dtype.kind
    if array.size == 0 or kind not in "biufc":
        return dict.fromkeys(NUMBERS)
    if kind == "b":
        return {"Max": bool(array.any()), "Min": bool(array.all()), "Mean": None, "Norm": None}
    with np.errstate(all="ignore"):
        wide = (np.abs(array) if kind == "c" else array).astype(np.float64).ravel()
        nans, infinities = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
        if nans:
            four: tuple[Any, ...] = (math.nan,) * 4
        elif infinities:
            four = float(wide.max()), float(wide.min()), float(wide.sum()), math.inf
        else:
            ends = array if kind in "iu" else wide
            scale = max(abs(float(wide.max())), abs(float(wide.min()))) or 1.0
            scaled = wide / scale
            norm = math.sqrt(float(scaled.dot(scaled))) * scale
            four = ends.max().item(), ends.min().item(), float(scaled.mean()) * scale, norm
    counts = {"nan_count": nans, "inf_count": infinities}
    return {**dict(zip(NUMBERS, four)), **{key: count for key, count in counts.items() if count}}
