# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tensors of given values."""

from __future__ import annotations

import mindspore as ms
import numpy as np


def tensor(values, dtype=np.float32):
    """Return a tensor of these values."""
    return ms.Tensor(np.array(values, dtype))
