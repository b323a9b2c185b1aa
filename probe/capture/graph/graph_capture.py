# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The capture backends for GRAPH_MODE, and for compiled Cells in PyNative mode, and the checks of a start there.

Each check raises a UsageError that names the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from probe.capture.graph import compiled_graphs
from probe.capture.graph.compiled_graphs import CompiledGraphs
from probe.capture.graph.sites import select_measurers
from probe.capture.support_ops import SupportedApi
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.recording.step_recorder import StepRecorder


class GraphCapture:
    """Records the Cells of compiled graphs between start and stop. The graphs report to it."""

    select_measurers = staticmethod(select_measurers)
    companion = None

    def __init__(self, graphs: CompiledGraphs) -> None:
        self._graphs = graphs  # the compiled graphs of this process
        #: waits until the graphs have run; raises a pending error of the training
        self.wait: Callable[[], None] = graphs.wait

    def add(self, api: SupportedApi) -> None:
        """Ignore a function of the user's own: no API is seen inside a graph."""

    def drop(self, owner: Any, name: str) -> None:
        """Ignore it too."""

    def watch(self, models: Any) -> None:
        """Do nothing: the Cells are watched since the first start, before MindSpore compiled them."""

    def install(self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None) -> None:
        """Begin to record."""
        self._graphs.begin(recorder)

    def remove(self) -> None:
        """Record no further call."""
        self._graphs.stop()

    def end_step(self) -> None:
        """End the open entries."""
        self._graphs.end_step()

    def detach(self) -> None:
        """Stop recording for good, in a forked child."""
        self._graphs.calls.detach()

    def save(self, *_: Any) -> None:
        """Do nothing: ``save`` is refused before."""


#: the tasks that compiled graphs support
TASKS = ("statistics", "tensor", "structure")
_WORKS = 'GRAPH_MODE supports level "L0" with the tasks "statistics", "tensor" and "structure"'
_OR = "or mindspore.set_context(mode=mindspore.PYNATIVE_MODE)"


def check_graph_settings(settings: Settings, token_range: Any) -> None:
    """Check that GRAPH_MODE supports the settings, and the argument of ``start``."""
    if not is_supported():
        raise UsageError(f"start(): GRAPH_MODE is supported on CPU and Ascend. Set one of these devices, {_OR}.")
    if settings.level != "L0":
        raise UsageError(f'{_WORKS}, not level "{settings.level}". Set "level": "L0", {_OR}.')
    if settings.task not in TASKS:
        raise UsageError(f'{_WORKS}, not task "{settings.task}". Set another task, {_OR}.')
    if token_range is not None:
        raise UsageError(f"start(): {_WORKS}, without token_range. Leave it out, {_OR}.")


def is_supported() -> bool:
    """Return whether graphs can report on this device."""
    return compiled_graphs.device_target() in ("CPU", "Ascend")


def check_cells(cells: Sequence[tuple[str, Any]], is_watched: bool) -> None:
    """Check that a graph of these Cells can still report, and that their shapes are fixed.

    ``is_watched`` tells that an earlier start has watched compilations.
    """
    dynamic = [path or "the model" for path, cell in cells if getattr(cell, "_dynamic_shape_inputs", None) is not None]
    if dynamic:
        raise UsageError(
            f"start(): {dynamic[0]} has dynamic shapes (set_inputs). In GRAPH_MODE only fixed shapes can be recorded."
        )
    compiled = (
        [] if is_watched else [path or "the model" for path, cell in cells if getattr(cell, "compile_cache", None)]
    )
    if compiled:
        raise UsageError(
            f"start(): {compiled[0]} is compiled already, and a compiled graph cannot be changed. "
            "Call start(model) before the first step, also if that step is not recorded."
        )
