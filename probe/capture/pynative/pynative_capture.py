# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The one owner of everything that probe installs into MindSpore and into a model."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from probe.capture.autograd.backward_entry import BackwardEntry
from probe.capture.autograd.debug_values import DebugValueHooks
from probe.capture.autograd.gradient_hooks import GradientHooks
from probe.capture.autograd.nodes import AutogradNodes
from probe.capture.autograd.parameter_hooks import ParameterHooks
from probe.capture.patches import Patch, PatchSet
from probe.capture.pynative import jit, recompute
from probe.capture.pynative.apis import ApiHooks
from probe.capture.pynative.cells import CellHooks, below
from probe.capture.pynative.collectives import CollectiveHooks, CommHandleTracker, is_collective
from probe.capture.pynative.primitives import PrimitiveHooks, find_primitives
from probe.capture.pynative.thread_state import ThreadState
from probe.capture.pynative.token_range import TokenRange
from probe.capture.support_ops import SupportedApi, load_supported_apis
from probe.config.settings import Settings

if TYPE_CHECKING:
    from probe.recording.step_recorder import StepRecorder

_log = logging.getLogger("probe")


#: how often the garbage collector runs between start and stop
_RARE = (200_000, 20, 100)


class PyNativeCapture:
    """Installs at ``start``, takes out at ``stop``; parameter hooks wait for the end of the step.

    Attributes:
        recorder: what is recorded now goes there; None while nothing is installed.
        state: what each thread is in the middle of.
        gradients: hooks on graph nodes; they go with the graph.
        parameters: hooks on parameters.
        saver: what the user saves by name.
        flights: asynchronous communications that the training has not waited for.
        wait: waits for what runs asynchronously; raises an error of the training that is pending.
        logs: the calls inside recomputed Cells.
        is_suspended: MindSpore and the Cells are shown as they are, for a moment.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        all_open: list[list[tuple[int, int, BackwardEntry]]] = []
        self.recorder: StepRecorder | None = None
        self.state = ThreadState(all_open)
        nodes = AutogradNodes()
        if not nodes.works:
            _log.warning(
                "this MindSpore's autograd cannot be watched, backward entries will be missing, "
                "forward data are complete (%s)",
                nodes.reason,
            )
        self.gradients = GradientHooks(nodes, self.state, all_open)
        self.wait = nodes.settle
        self.parameters = ParameterHooks()
        self.saver = DebugValueHooks(nodes)
        self.flights = CommHandleTracker()
        listed = load_supported_apis(settings.support_ops) if settings.apis else []
        self._watch, self._collectives = ApiHooks(self), CollectiveHooks(self)
        self._apis = self._patches(listed)
        self.logs = recompute.ReplayLogs()
        self._recompute = recompute.patches(self)
        self._jit = jit.patches(self)
        self._copies = jit.copies(self)
        self._custom: dict[tuple[int, str], PatchSet] = {}
        self._tokens: TokenRange | None = None
        self._collector: tuple[int, int, int] | None = None
        self._installed = self.is_suspended = False
        self._found: list[tuple[str, Any]] = []
        self._cells: CellHooks | None = None
        self._primitives: PrimitiveHooks | None = None

    def add(self, api: SupportedApi) -> None:
        """Record a function of the user's own too."""
        place = id(api.owner), api.name
        if self._settings.apis and place not in self._custom:
            self._custom[place] = self._patches([api])
            if self._installed and not self.is_suspended:
                self._custom[place].install()

    def _patches(self, listed: list[SupportedApi]) -> PatchSet:
        made = []
        for api in listed:
            watch = self._collectives if is_collective(api.key) else self._watch
            made.append(Patch(api.owner, api.name, functools.partial(watch.wrap, api.key)))
        return PatchSet(made)

    def drop(self, owner: Any, name: str) -> None:
        """Leave such a function alone again."""
        patches = self._custom.pop((id(owner), name), None)
        if patches is not None:
            patches.remove()

    def watch(self, models: Any) -> None:
        """Take the Cells and Primitives of these models in place of those before; cheap where they are the same."""
        cells = list(below(models))
        held = find_primitives(cell for _, cell in cells) if self._settings.apis else []
        found = cells + held
        if len(found) == len(self._found) and all(a[1] is b[1] and a[0] == b[0] for a, b in zip(found, self._found)):
            return
        self._suspend()
        self.parameters.forget()
        self._found = found
        self._cells = CellHooks(self, models, cells) if self._settings.cells else None
        self._primitives = PrimitiveHooks(self, held) if held else None

    def install(self, recorder: StepRecorder, tokens: TokenRange | None = None) -> None:
        """Begin to record into ``recorder``, all the time or while ``tokens`` says so."""
        if not self._installed:
            self._rare_collections()
        self._installed, self.recorder, self.is_suspended = True, recorder, False
        self.flights.recorder = recorder
        self.state.cells.clear()
        try:
            self.parameters.begin(recorder)
            self._recompute.install()
            self._jit.install()
            self._suspend()
            if tokens is not None:
                tokens.begin(self, recorder)
            self._tokens = tokens
            self._resume()
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Put everything back but the hooks that a backward may still need; it may be asked for twice."""
        self._installed, self.recorder = False, None
        self.flights.recorder = None
        if self._collector is not None and gc.get_threshold() == _RARE:
            gc.set_threshold(*self._collector)
        self._collector = None
        self._suspend()
        if self._tokens is not None:
            self._tokens.end()
            self._tokens = None
        self._jit.remove()
        self._recompute.remove()
        self.gradients.flush()

    def orphan(self) -> None:
        """Record nothing more in a forked child, and never again."""
        self.recorder = self.flights.recorder = None
        self.flights.orphan()
        if self._tokens is not None:
            self._tokens.end()

    def end_step(self) -> None:
        """Take the parameter hooks away too."""
        self.gradients.flush()
        self.parameters.remove()
        self.saver.remove()
        self.flights.end()
        self.logs.clear()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Show MindSpore and the Cells as they are, for as long as something is compiled or copied."""
        if not self._installed or self.is_suspended:
            yield
            return
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    def suspend(self) -> None:
        """Show MindSpore and the Cells as they are until ``resume``."""
        if self._installed:
            self.is_suspended = True
            self._suspend()

    def resume(self) -> None:
        """Install again what ``suspend`` took out, unless the recording has ended meanwhile."""
        if self.is_suspended:
            self.is_suspended = False
            if self._installed:
                self._resume()

    def _rare_collections(self) -> None:
        """Let the garbage collector run rarely: its looks at all that a training holds would fall into the step."""
        before = gc.get_threshold()
        if 0 < before[0] < _RARE[0]:
            self._collector = before
            gc.set_threshold(*_RARE)

    def _resume(self) -> None:
        self._copies.install()
        self.flights.patches.install()
        self._apis.install()
        for custom in self._custom.values():
            custom.install()
        if self._primitives is not None:
            self._primitives.install()
        if self._cells is not None:
            self._cells.install()
        if self._tokens is not None:
            self._tokens.patches.install()

    def _suspend(self) -> None:
        if self._tokens is not None:
            self._tokens.patches.remove()
        self._copies.remove()
        if self._cells is not None:
            self._cells.remove()
        if self._primitives is not None:
            self._primitives.remove()
        for custom in self._custom.values():
            custom.remove()
        self._apis.remove()
        self.flights.patches.remove()
