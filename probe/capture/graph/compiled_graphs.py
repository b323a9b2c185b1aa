# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The capture backend for GRAPH_MODE, and for compiled Cells in PyNative mode, and the checks of a start there.

Each check raises a UsageError that names the remedy.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.constructs import CompilationHooks, Constructs
from probe.capture.graph.operators import MOST, WATCHED, CallbackOperators, FileOperators, GraphOperators
from probe.capture.graph.sites import Plans, select_measurers
from probe.capture.graph.templates import ascend_operators
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.executor import pynative_executor
from probe.recording.step_recorder import StepRecorder


class CompiledGraphs:
    """Watches compilations from the first ``start`` until ``close``, and records Cells between start and stop.

    A graph that was compiled with reports keeps them. While nothing is recorded, they do nothing. In PyNative mode
    (``is_split``), forward and backward of a Cell are two graphs. On Ascend, files are written below ``dump_path``.
    """

    select_measurers = staticmethod(select_measurers)
    companion = None

    def __init__(self, is_split: bool, dump_path: str, watches: bool) -> None:
        self._watches = watches
        self.calls = calls = GraphCalls(Plans(MOST, WATCHED if watches else 0))
        self._device = device_target()
        if self._device == "CPU":
            self._operators: GraphOperators = CallbackOperators(calls, is_split)
        else:
            self._operators = FileOperators(calls, ascend_operators(), is_split, dump_path)
        self._cells: list[tuple[str, Any]] = []
        self._hooks: CompilationHooks | None = None
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def serves(self, is_split: bool, watches: bool) -> bool:
        """Return whether the reports are those for this mode and for the device of now, and tell enough."""
        is_same = self._operators.is_split == is_split and self._device == device_target()
        return is_same and self._watches >= watches

    def knows(self, cell: Any) -> bool:
        """Return whether a Cell was watched before: its compiled graphs report."""
        return cell in self._known

    def watch_cells(self, cells: Sequence[tuple[str, Any]]) -> None:
        """Report the calls of these Cells in all graphs that are compiled from now on."""
        old = self._cells
        if len(cells) == len(old) and all(a[1] is b[1] and a[0] == b[0] for a, b in zip(cells, old)):
            return
        self._unwatch()
        self._cells = list(cells)
        self._known.update(cell for _, cell in cells)
        is_recomputed = any(getattr(cell, "_recompute_cell", None) is not None for _, cell in cells)
        self._operators.recomputes = is_recomputed and not self._operators.is_split
        self._hooks = CompilationHooks(Constructs(cells, self._operators, self.calls))
        self._hooks.install()

    def close(self) -> None:
        """Watch no more compilations. Nothing of ours is left but the reports in compiled graphs."""
        self._unwatch()
        self._operators.close()

    def _unwatch(self) -> None:
        if self._hooks is not None:
            self._hooks.remove()
        self._hooks, self._cells = None, []

    def wait(self) -> None:
        """Wait until the running graphs have ended; raise a pending error of the training."""
        if not self._operators.is_running:
            pynative_executor().sync()

    def install(self, recorder: StepRecorder, model: Any = None, token_range: tuple[int, int] | None = None) -> None:
        """Record the calls that begin from now on."""
        self._operators.begin()
        self.calls.begin(recorder)

    def remove(self) -> None:
        """Record no further call. Gradients of recorded calls still arrive."""
        self._operators.replay()
        self.calls.stop()

    def end_step(self) -> None:
        """End the open entries."""
        self._operators.replay()
        self._operators.end()
        self.calls.end_step()

    def detach(self) -> None:
        """Stop recording for good, in a forked child."""
        self.calls.detach()

    def save(self, *_: Any) -> None:
        """Do nothing: no API is seen inside a graph, its Cells are watched already, and ``save`` is refused before."""

    add = drop = watch = save


def device_target() -> str:
    """Return the device that graphs run on."""
    import mindspore

    return str(mindspore.get_context("device_target"))


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
    return device_target() in ("CPU", "Ascend")


def check_cells(cells: Sequence[tuple[str, Any]], is_watched: bool) -> None:
    """Check that a graph of these Cells can still report, and that their shapes are fixed.

    ``is_watched`` tells that an earlier start has watched compilations.
    """
    dynamic = [path or "the model" for path, cell in cells if getattr(cell, "_dynamic_shape_inputs", None) is not None]
    if dynamic:
        raise UsageError(
            f"start(): {dynamic[0]} has dynamic shapes (set_inputs). In GRAPH_MODE only fixed shapes can be recorded."
        )
    compiled = [path or "the model" for path, cell in cells if getattr(cell, "compile_cache", None)]
    if compiled and not is_watched:
        raise UsageError(
            f"start(): {compiled[0]} is compiled already, and a compiled graph cannot be changed. "
            "Call start(model) before the first step, also if that step is not recorded."
        )
