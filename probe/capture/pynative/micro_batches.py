# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which micro-batch of a pipeline runs: its schedule tells each method of a stage as ``micro_index``.

The schedule is that of hyper_parallel, which is never imported here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from probe.capture.patches import HookGroup, Patch, around
from probe.capture.pynative.thread_state import ThreadState


class MicroBatchHooks(HookGroup):
    """Notes the number of the micro-batch while a method of a stage runs. Nothing is patched without hyper_parallel."""

    def __init__(self, state: ThreadState) -> None:
        super().__init__()
        self._state = state  # the state of each thread, which receives the number

    def install(self) -> None:
        """Patch the methods of stages."""
        if not self._is_installed:
            stage = getattr(sys.modules.get("hyper_parallel"), "PipelineStage", None)
            self._hooks = [Patch(*place, around(self._run)) for place in _methods(stage)]
        super().install()

    def _run(self, original: Callable[..., Any], stage: Any, *args: Any, **kwargs: Any) -> Any:
        number = args[0] if args else kwargs.get("micro_index")
        before, self._state.micro = self._state.micro, str(number) if isinstance(number, int) else None
        try:
            return original(stage, *args, **kwargs)
        finally:
            self._state.micro = before


def _methods(stage: Any) -> Iterator[tuple[type, str]]:
    """Yield the class and the name of each method whose first argument is the number of a micro-batch."""
    for owner in getattr(stage, "__mro__", ()):
        for name, method in vars(owner).items():
            if getattr(getattr(method, "__code__", None), "co_varnames", ())[1:2] == ("micro_index",):
                yield owner, name
