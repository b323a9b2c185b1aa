# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Tells the moving statistics of a BatchNorm that trains: it keeps them for its backward, which does not use them.

A second call of the same BatchNorm writes them before that backward. In evaluation the gradient does depend on them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

#: so many frames stand between MindSpore's call for a kept tensor and the BatchNorm
_MOST_FRAMES = 12
_NAMES = ("running_mean", "running_var")


def is_moving_statistic(tensor: Any) -> bool:
    """Return whether a tensor that is kept now is a moving statistic of a BatchNorm that trains."""
    if not tensor._is_leaf or len(tensor._shape) != 1:
        return False
    address = tensor._data_ptr()
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return False
        # the locals of a frame of the training are never read: they would keep its tensors alive
        is_inside = str(frame.f_globals.get("__name__")).startswith("mindspore.")
        held = _statistics(frame.f_locals) if is_inside else ()
        if any(one._data_ptr() == address for one in held):
            return True
        frame = frame.f_back
    return False


def _statistics(known: Mapping[str, Any]) -> Iterable[Any]:
    """Return the moving statistics in the local names of a frame, if it is of a BatchNorm that trains."""
    if known.get("training") is True:
        return [known[name] for name in _NAMES if hasattr(known.get(name), "_data_ptr")]
    primitive = known.get("self")
    arguments = known.get("args")
    if type(primitive).__name__ != "BatchNorm" or not isinstance(arguments, tuple):
        return ()
    if vars(primitive).get("is_training") is not True:
        return ()
    return [one for one in arguments[3:5] if hasattr(one, "_data_ptr")]
