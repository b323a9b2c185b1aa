# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""A window inside a window: some forwards of the model, as in a loop that makes one token after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.capture.patches import Patch, PatchSet

if TYPE_CHECKING:
    from probe.capture.pynative.pynative_capture import PyNativeCapture
    from probe.recording.step_recorder import StepRecorder


class TokenRange:
    """Records from the begin of one forward of the model to the end of another.

    Args:
        model: the Cell whose forwards are counted, from 0.
        first: the first forward that is recorded.
        last: the last one.

    Attributes:
        patches: what counts; it stands over all others.
    """

    def __init__(self, model: Any, first: int, last: int) -> None:
        from mindspore import nn

        self._model, self._first, self._last = model, first, last
        self._count = self._depth = 0
        self._collection: PyNativeCapture | None = None
        self._recorder: StepRecorder | None = None
        self.patches = PatchSet([Patch(nn.Cell, "__call__", self._counted)])

    def begin(self, collection: PyNativeCapture, recorder: StepRecorder) -> None:
        """Begin to count; nothing is recorded before the first forward."""
        self._collection, self._recorder = collection, recorder
        collection.recorder = None

    def end(self) -> None:
        """Count no more."""
        self._collection = None

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(cell: Any, *args: Any, **kwargs: Any) -> Any:
            collection = self._collection
            if cell is not self._model or self._depth or collection is None:
                return original(cell, *args, **kwargs)
            if self._count == self._first:
                collection.recorder = self._recorder
            self._depth = 1
            try:
                return original(cell, *args, **kwargs)
            finally:
                self._depth = 0
                if self._count == self._last:
                    collection.recorder = None
                self._count += 1

        return functools.update_wrapper(__call__, original)
