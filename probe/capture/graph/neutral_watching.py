# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which gradients can be watched in a compiled Cell of a PyNative training without changing a bit of it.

There MindSpore inlines all Cells before it derives the backward. A tensor that is used at four places has the gradient
((a + b) + c) + d. If three of them are in one Cell whose input is watched, it has a + ((b + c) + d): other last bits.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

#: layers of MindSpore that use their input at one place
_LAYERS = frozenset(
    (
        "Dense", "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose",
        "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm2d",
        "ReLU", "ReLU6", "Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Flatten", "MaxPool2d", "AvgPool2d",
    )
)  # fmt: skip


def find_neutral(cells: Sequence[Any]) -> set[int]:
    """Return the identities of the Cells whose inputs can be watched.

    They are the outermost compiled Cells, whose inputs nobody else in the graph uses, Cells with a backward of their
    own, and simple layers of MindSpore.
    """
    compiled = [cell for cell in cells if is_jit(cell)]
    inner = {id(cell) for part in compiled for name, cell in part.cells_and_names() if name}
    outermost = {id(cell) for cell in compiled} - inner
    return outermost | {id(cell) for cell in cells if _uses_inputs_once(cell)}


def _uses_inputs_once(cell: Any) -> bool:
    kind = type(cell)
    is_simple = kind.__module__.startswith("mindspore.") and kind.__name__ in _LAYERS
    return is_simple or callable(getattr(cell, "bprop", None))


def is_jit(cell: Any) -> bool:
    """Return whether a Cell's construct is compiled from its source in PyNative mode."""
    function = getattr(cell.construct, "__func__", cell.construct)
    code = getattr(function, "__code__", None)
    return os.environ.get("MS_JIT") != "0" and code is not None and code.co_name == "staging_specialize"
