# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The numbers of one tensor, read as fast as possible: the norm in one pass, the ends where they are asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from probe.measure.statistics import statistics
from probe.measure.tensor_reader import TensorReader


class FastNumbers:
    """Reads norms on the host. On CPU they are read straight from the memory of the tensor."""

    def __init__(self) -> None:
        self._read = TensorReader()

    def norm(self, tensor: Any) -> float:
        """Return the L2 norm of a tensor; NaN or Inf if an element is."""
        array = tensor if isinstance(tensor, np.ndarray) else self._read(tensor)
        if array.dtype == np.float32 and array.size:
            flat = array.reshape(-1)
            square = float(np.dot(flat, flat))
            if 1e-30 < square < math.inf:
                return math.sqrt(square)
        return self.ends(tensor)[0]

    def ends(self, tensor: Any) -> tuple[float, float, float]:
        """Return Norm, Max and Min of a tensor."""
        numbers = statistics(tensor if isinstance(tensor, np.ndarray) else self._read(tensor))
        norm, high, low = (numbers.get(key) for key in ("Norm", "Max", "Min"))
        return _number(norm), _number(high), _number(low)

    def copy(self, tensor: Any) -> np.ndarray[Any, Any]:
        """Return a copy of the values of a tensor."""
        return np.array(self._read(tensor), copy=True)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
