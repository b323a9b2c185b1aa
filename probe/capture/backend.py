# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The selection of a capture backend, and the checks before it records."""

from __future__ import annotations

from typing import Any

from probe.capture.pynative.cells import is_cell_or_cells
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
from probe.config.validators import is_range
from probe.errors import UsageError

#: a way to see a training: a second one makes this a union
CaptureBackend = PyNativeCapture


def select_backend(settings: Settings) -> CaptureBackend:
    """Return a new backend for these settings."""
    return PyNativeCapture(settings)


def check_mode() -> None:
    """Check that MindSpore runs in a mode whose calls can be recorded.

    Raises:
        UsageError: in GRAPH_MODE.
    """
    import mindspore
    from mindspore import context

    # the private function is thirty times faster
    mode = context._get_mode() if hasattr(context, "_get_mode") else mindspore.get_context("mode")
    if mode != mindspore.PYNATIVE_MODE:
        raise UsageError(
            "start(): MindSpore runs in GRAPH_MODE, where calls cannot be seen. "
            "Call mindspore.set_context(mode=mindspore.PYNATIVE_MODE) first."
        )


def check_start(model: Any, token_range: Any, rank_id: Any) -> None:
    """Check the arguments of ``start``.

    Raises:
        UsageError: when one cannot be served; the message names it and the allowed values.
    """
    if token_range is not None and not is_range(token_range):
        raise UsageError(
            f"start(): token_range {token_range!r} is not allowed. Allowed: [a, b], the first and the last forward "
            "of the model to record, counted from 0."
        )
    if model is not None and not is_cell_or_cells(model):
        raise UsageError(
            f"start(): model is {type(model).__name__}. Allowed: a mindspore.nn.Cell, or a list or tuple of Cells."
        )
    if rank_id is not None and (isinstance(rank_id, bool) or not isinstance(rank_id, int) or rank_id < 0):
        raise UsageError(f"start(): rank_id {rank_id!r} is not allowed. Allowed: a whole number from 0.")
