# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The compiled graphs of a process: everything that makes them report."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from probe.capture.graph.calls import GraphCalls
from probe.capture.graph.constructs import CompilationHooks, Constructs
from probe.capture.graph.file_operators import FileOperators, GraphOperators
from probe.capture.graph.file_templates import ascend_operators
from probe.capture.graph.operators import MOST, WATCHED, CallbackOperators
from probe.capture.graph.sites import Plans
from probe.executor import pynative_executor
from probe.recording.step_recorder import StepRecorder


class CompiledGraphs:
    """Watches compilations from the first ``start`` until ``close``, and passes the events of graphs on.

    A graph that was compiled with reports keeps them. While nothing is recorded, they do nothing. In PyNative mode
    (``is_split``), forward and backward of a Cell are two graphs. On Ascend, files are written below ``dump_path``.
    """

    def __init__(self, is_split: bool, dump_path: str, watches: bool) -> None:
        self._watches = watches
        self._plans = plans = Plans(MOST, WATCHED if watches else 0)
        self.calls = calls = GraphCalls(plans)
        self._device = device_target()
        self._operators: GraphOperators = (
            CallbackOperators(calls, is_split)
            if self._device == "CPU"
            else FileOperators(calls, plans, ascend_operators(), is_split, dump_path)
        )
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

    def watch(self, cells: Sequence[tuple[str, Any]]) -> None:
        """Report the calls of these Cells in all graphs that are compiled from now on."""
        old = self._cells
        if len(cells) == len(old) and all(a[1] is b[1] and a[0] == b[0] for a, b in zip(cells, old)):
            return
        self._unwatch()
        self._cells = list(cells)
        self._known.update(cell for _, cell in cells)
        is_recomputed = any(getattr(cell, "_recompute_cell", None) is not None for _, cell in cells)
        self._operators.recomputes = is_recomputed and not self._operators.is_split
        self._hooks = CompilationHooks(Constructs(cells, self._plans, self._operators, self.calls))
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

    def begin(self, recorder: StepRecorder) -> None:
        """Record the calls that begin from now on."""
        self._operators.begin()
        self.calls.begin(recorder)

    def stop(self) -> None:
        """Record no further call. Gradients of recorded calls still arrive."""
        self._operators.replay()
        self.calls.stop()

    def end_step(self) -> None:
        """End the open entries."""
        self._operators.replay()
        self._operators.end()
        self.calls.end_step()


def device_target() -> str:
    """Return the device that graphs run on."""
    import mindspore

    return str(mindspore.get_context("device_target"))
