# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The interface of capture backends, and the selection of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from probe.capture.support_ops import SupportedApi
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.recording.step_recorder import StepRecorder
from probe.tasks.debug import DebugTask


class CaptureBackend(Protocol):
    """One way to see a training. Everything that it installs, it removes again.

    Attributes:
        wait: waits for asynchronous work; raises a pending error of the training.
    """

    wait: Callable[[], None]

    def add(self, api: SupportedApi) -> None:
        """Record a function of the user's own too."""

    def drop(self, owner: Any, name: str) -> None:
        """Stop recording such a function."""

    def watch(self, models: Any) -> None:
        """Watch the Cells of these models, instead of those of earlier models."""

    def install(self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None) -> None:
        """Begin to record: ``start``."""

    def remove(self) -> None:
        """Put everything back: ``stop``. It may be called twice."""

    def end_step(self) -> None:
        """Remove the hooks that waited for a backward: ``step``."""

    def detach(self) -> None:
        """Stop recording for good, in a forked child."""

    def save(self, recorder: StepRecorder, task: DebugTask, variable: Any, name: str, backward: bool) -> None:
        """Record a value by name, and its gradients."""


def select_backend(settings: Settings) -> CaptureBackend:
    """Return a new backend for these settings."""
    from probe.capture.pynative.pynative_capture import PyNativeCapture

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
