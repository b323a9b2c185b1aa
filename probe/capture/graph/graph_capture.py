# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The capture backend for GRAPH_MODE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probe.capture.graph.compiled_graphs import CompiledGraphs
from probe.capture.support_ops import SupportedApi
from probe.recording.step_recorder import StepRecorder


class GraphCapture:
    """Records the Cells of compiled graphs between start and stop. The graphs report to it.

    Args:
        graphs: the compiled graphs of this process.

    Attributes:
        gives_arrays: yes.
        companion: none.
        wait: waits until the graphs have run; raises a pending error of the training.
    """

    gives_arrays = True
    companion = None

    def __init__(self, graphs: CompiledGraphs) -> None:
        self._graphs = graphs
        self.wait: Callable[[], None] = graphs.wait

    def add(self, api: SupportedApi) -> None:
        """Ignore a function of the user's own: no API is seen inside a graph."""

    def drop(self, owner: Any, name: str) -> None:
        """Ignore it too."""

    def watch(self, models: Any) -> None:
        """Do nothing: the Cells are watched since the first start, before MindSpore compiled them."""

    def install(self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None) -> None:
        """Begin to record."""
        self._graphs.calls.begin(recorder)

    def remove(self) -> None:
        """Record no further call."""
        self._graphs.calls.stop()

    def end_step(self) -> None:
        """End the open entries."""
        self._graphs.calls.end_step()

    def detach(self) -> None:
        """Stop recording for good, in a forked child."""
        self._graphs.calls.detach()

    def save(self, *_: Any) -> None:
        """Do nothing: ``save`` is refused before."""
