# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arrays with the methods of a Tensor: on CPU the kernels of sums and products keep a kilobyte of each call."""

from __future__ import annotations

from typing import Any

import numpy as np


class HostTensor(np.ndarray[Any, Any]):
    """An array that ``features`` takes in place of a Tensor. The methods do as those of a Tensor."""

    def float(self) -> Any:
        """Return float32."""
        return self.astype(np.float32)

    def matmul(self, other: Any) -> Any:
        """Return the product of matrices."""
        return self @ other

    def masked_fill(self, mask: Any, value: Any) -> Any:
        """Return the elements, and ``value`` where the mask is set."""
        return np.where(mask, value, self).astype(self.dtype).view(HostTensor)

    def softmax(self) -> Any:
        """Return the weights of each row."""
        weights = np.exp(self - self.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    def sqrt(self) -> Any:
        """Return square roots."""
        return np.sqrt(self)

    def log(self) -> Any:
        """Return natural logarithms."""
        return np.log(self)

    def expm1(self) -> Any:
        """Return exp(x) - 1."""
        return np.expm1(self)

    def sign(self) -> Any:
        """Return -1, 0 or 1."""
        return np.sign(self)
