# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The selection of a capture backend, and the checks before it records."""

from __future__ import annotations

from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
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
