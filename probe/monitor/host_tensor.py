# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arrays with the methods of a Tensor: on CPU the kernels of sums and products keep a kilobyte of each call."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


class HostTensor(np.ndarray[Any, Any]):
    """An array that ``mechanisms`` takes in place of a Tensor. The methods do as those of a Tensor."""

    def float(self) -> Any:
        """Return float32."""
        return self.astype(np.float32)

    def masked_fill(self, mask: Any, value: Any) -> Any:
        """Return the elements, and ``value`` where the mask is set."""
        return np.where(mask, value, self).astype(self.dtype).view(HostTensor)

    def softmax(self) -> Any:
        """Return the weights of each row."""
        weights = np.exp(self - self.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def __getattr__(self, name: str) -> Any:
        return functools.partial(getattr(np, name), self)  # matmul, sqrt, log, expm1 and sign are functions of numpy
