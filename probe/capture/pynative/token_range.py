# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""token_range: records only forwards a to b of the model, as in a loop that generates tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.context import CaptureContext


class TokenRange(HookGroup):
    """Starts the recording with one forward of the model, and stops it after another.

    Its patch is installed after all others. Outside these forwards ``context.recorder`` is None.

    Args:
        context: shared by the hooks of the capture.
        model: the Cell whose forwards are counted, from 0.
        first: the first forward that is recorded.
        last: the last one.
    """

    def __init__(self, context: CaptureContext, model: Any, first: int, last: int) -> None:
        from mindspore import nn

        super().__init__([Patch(nn.Cell, "__call__", around(self._counted))])
        self._context, self._model, self._first, self._last = context, model, first, last
        self._count = self._depth = 0
        self._recorder, context.recorder = context.recorder, None

    def _counted(self, original: Callable[..., Any], cell: Any, *args: Any, **kwargs: Any) -> Any:
        context = self._context
        if cell is not self._model or self._depth or not self._is_installed:
            return original(cell, *args, **kwargs)
        if self._count == self._first:
            context.recorder = self._recorder
        self._depth = 1
        try:
            return original(cell, *args, **kwargs)
        finally:
            self._depth = 0
            if self._count == self._last:
                context.recorder = None
            self._count += 1
