# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The largest difference that is still agreement, by dtype."""

from __future__ import annotations

import functools

#: on rel_l2. Those of the half kinds are torch.testing's; that of float32 is of a whole net, not of one call
_TOLERANCES = {
    1e-12: "float64 double complex128", 1e-5: "float32 float complex64", 2e-3: "float16 half", 1.6e-2: "bfloat16",
    0.13: "hifloat8 float8_e4m3fn", 0.25: "float8_e5m2",
}  # fmt: skip
BY_DTYPE = {
    dtype: tolerance for tolerance, dtypes in _TOLERANCES.items() for dtype in dtypes.split()
}
#: the same -> half of the distance of two numbers
HALF_STEPS = {1e-12: 2**-53, 1e-5: 2**-24, 2e-3: 2**-11, 1.6e-2: 2**-8, 0.13: 2**-4, 0.25: 2**-3}


@functools.lru_cache(maxsize=256)
def _of_name(dtype: str) -> float:
    return BY_DTYPE.get(dtype.rpartition(".")[2].lower(), 0.0)


def of_dtype(dtype: object) -> float:
    """Return the tolerance of a dtype; integers, bools and unknown ones must be equal.

    >>> of_dtype("Float32"), of_dtype("torch.bfloat16"), of_dtype("Int64"), of_dtype(None)
    (1e-05, 0.016, 0.0, 0.0)
    """
    return _of_name(dtype) if type(dtype) is str else 0.0
