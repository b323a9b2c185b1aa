# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Which faults a training has now, a training, and numbers that are the same in each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np


class Training(NamedTuple):
    """A training that a program can record.

    The function of the loss may return further outputs, which ``after`` is given behind the update.
    """

    model: Any
    optimizer: Any
    loss_of: Callable[..., Any]
    batch: Callable[[int], tuple[Any, ...]]
    clip: float = 0.0
    after: Callable[..., None] | None = None


@dataclass
class Fault:
    """The faults of a training. The name of each one stands in the line of the program that it changes."""

    names: tuple[str, ...] = ()

    def __call__(self, name: str) -> bool:
        """Return whether the training has this fault."""
        return name in self.names

    def either(self, name: str, wrong: Any, right: Any) -> Any:
        """Return the wrong value where the training has this fault, else the right one."""
        return wrong if name in self.names else right


def real(*shape: int, seed: int = 0, scale: float = 1.0) -> ms.Tensor:
    numbers = np.random.default_rng(seed).normal(size=shape) * scale
    return ms.Tensor(numbers.astype(np.float32))


def whole(*shape: int, high: int, seed: int = 0) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(seed).integers(0, high, shape), ms.int32)
