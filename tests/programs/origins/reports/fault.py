# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which fault a training has now, and numbers that are the same in each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np


@dataclass
class Fault:
    """The fault of a training. The name of each one stands in the line of the program that it changes."""

    name: str = ""

    def __call__(self, name: str) -> bool:
        """Return whether the training has this fault."""
        return self.name == name

    def either(self, name: str, wrong: Any, right: Any) -> Any:
        """Return the wrong value where the training has this fault, else the right one."""
        return wrong if self.name == name else right


def real(*shape: int, seed: int = 0, scale: float = 1.0) -> ms.Tensor:
    numbers = np.random.default_rng(seed).normal(size=shape) * scale
    return ms.Tensor(numbers.astype(np.float32))


def whole(*shape: int, high: int, seed: int = 0) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(seed).integers(0, high, shape), ms.int32)
