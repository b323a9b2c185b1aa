# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arrays of many kinds with their Mean and Norm in float64, and how far the measured ones are from these."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from probe.measure.statistics import statistics

DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "complex64": np.complex64,
}
#: beside every change of method, and 64 numbers are a row
SIZES = [
    1,
    2,
    31,
    33,
    47,
    48,
    49,
    63,
    64,
    65,
    95,
    96,
    97,
    1000,
    6143,
    6144,
    6145,
    16383,
    16384,
    16385,
]
LARGE_SIZES = [65535, 65536, 65537, 262143, 262144, 262145, 1000003]


def _steps(rng, size, limits):
    """Return one half of one constant and one half of another: the same rounding again and again."""
    return np.where(np.arange(size) < size // 2, rng.uniform(0.5, 1), rng.uniform(0.5, 1))


#: (generator of random numbers, size, finfo of the dtype) -> float64
KINDS = {
    "random": lambda rng, size, limits: rng.standard_normal(size),
    "positive": lambda rng, size, limits: rng.random(size),
    "constant": lambda rng, size, limits: np.full(size, rng.uniform(0.5, 1)),
    "nearly constant": lambda rng, size, limits: (
        rng.uniform(0.5, 1) * (1 + 1e-6 * rng.standard_normal(size))
    ),
    "steps": _steps,
    "equal rows": lambda rng, size, limits: np.resize(rng.uniform(0.5, 1, 64), size),
    "skewed": lambda rng, size, limits: 1 / (rng.random(size) + 1e-4),
    "mostly zeros": lambda rng, size, limits: (
        rng.standard_normal(size) * (rng.random(size) < 0.001)
    ),
    "tiny": lambda rng, size, limits: rng.standard_normal(size) * 64 * float(limits.tiny),
    "subnormal": lambda rng, size, limits: (
        rng.standard_normal(size) * 64 * float(limits.smallest_subnormal)
    ),
    "large": lambda rng, size, limits: rng.uniform(-0.5, 1, size) * 0.5 * float(limits.max),
    "one large": lambda rng, size, limits: np.where(
        np.arange(size) == size // 3, 1e4, rng.random(size)
    ),
}


def make(kind, dtype, size, seed=1):
    """Return an array of a kind."""
    rng = np.random.default_rng([seed, size])
    limits = ml_dtypes.finfo(np.float32 if dtype is np.complex64 else dtype)
    values = KINDS[kind](rng, size, limits)
    if dtype is np.complex64:
        values = values + 1j * KINDS[kind](rng, size, limits)
    return values.astype(dtype)


def wide(array):
    """Return the float64 numbers that are measured."""
    if array.dtype.kind == "c":
        return np.abs(array.astype(np.complex128))
    return array.astype(np.float64)


def errors(array):
    """Return how far Mean, Norm, Max and Min of an array are from the truth."""
    found, truth = statistics(array), wide(array)
    scale = np.abs(truth).max() or 1.0
    norm = np.sqrt(((truth / scale) ** 2).sum()) * scale
    return {
        "Mean": abs(found["Mean"] - (truth / scale).mean() * scale) / scale,
        "Norm": abs(found["Norm"] - norm) / (norm or 1.0),
        "Max": abs(found["Max"] - truth.max()) / scale,
        "Min": abs(found["Min"] - truth.min()) / scale,
    }
