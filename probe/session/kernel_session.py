# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The life of a debugger of level L2: MindSpore records, and start, stop and step tell it when."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from probe.capture.kernel.kernel_dump import KernelDump
from probe.capture.pynative.cells import iter_cells
from probe.config.settings import ConfigFile, Settings
from probe.errors import SettingsError, UsageError
from probe.session.arguments import check_init_step
from probe.session.session import Session
from probe.session.session_state import State, serialized, wants_rank

_log = logging.getLogger("probe")


class KernelSession(Session):
    """Implements start, stop and step at level L2; see ``Session``."""

    def __init__(self, settings: Settings, source: ConfigFile, before: Session | None = None) -> None:
        super().__init__(settings, source, before)
        folders = self._run.folders
        if self.state is not State.DETACHED and not (folders.kernels and folders.kernels.is_configured):
            folders.kernels = KernelDump(settings)

    @property
    def _dump(self) -> KernelDump:
        found: KernelDump = self._run.folders.kernels
        return found

    def _with_reloaded_settings(self, action: Any) -> None:
        with contextlib.suppress(SettingsError):
            if self.source.changed() is not None:
                _log.warning("config file changed: at level L2 an edit has no effect, as MindSpore reads its own once")
        action()

    def _start(self, token_range: Any) -> None:
        if token_range is not None:
            raise UsageError('start(): token_range is not allowed at level "L2"; MindSpore\'s dump has no such choice')
        rank, run = self._run.ranks.rank(), self._run
        self._report.is_reached |= self.settings.dump_enable and self._window.wants(self.settings, rank)
        if not wants_rank(self.settings, rank):
            return
        if self._dump.settings != self.settings:
            raise UsageError(
                f"start(): MindSpore already dumps kernels into {self._dump.root}. It reads its configuration once in "
                "a process; other settings need a new process."
            )
        if not self._dump.is_configured:
            self._unless_disabled("configuring the kernel dump", lambda: self._configure(rank))
        self._unless_disabled("describing the model", lambda: self._dump.describe(self._models, rank, iter_cells))
        if self._window.wants(self.settings, rank):
            self.state = State.RECORDING
            self._unless_disabled("dumping kernels", lambda: self._dump.begin(self._window.step))
            self._sigterm.install()
        run.root = self._dump.root or run.root

    def _configure(self, rank: int | None) -> None:
        import mindspore

        self._dump.configure(rank, self._window.step)
        if mindspore.get_context("mode") == mindspore.PYNATIVE_MODE:
            text = "level L2 in PyNative mode: MindSpore dumps the kernels of compiled functions and optimizers only"
            self._log_once(text)

    @serialized
    def stop(self) -> None:
        """Let MindSpore dump no more."""
        if self.state is State.RECORDING:
            self.state = State.PAUSED
            self._sigterm.remove()
            self._dump.end()

    def _end_step(self, wait: bool = True) -> None:
        if self.state is State.PAUSED:
            self.state = State.IDLE
            self._unless_disabled("measuring kernels", self._finish_step)

    def _finish_step(self) -> None:
        step = self._window.step
        if self._dump.finish_step(step):
            self._report.add_step(step, self._dump.root, True)

    @serialized
    def begin_at(self, step: Any) -> None:
        """Number the next step; between start and stop, the step that is open."""
        check_init_step(step)
        is_open = self.state is State.RECORDING
        self.stop()
        self._end_step()
        self._window.begin_at(step)
        if is_open:
            self._start(None)

    @serialized
    def begin_training(self, network: Any, loss: Any) -> Any:
        """Return the model for start(), or None where start() was given one."""
        return None if self._models is not None else network

    def close(self) -> None:
        """Measure the rest, release everything, and say where the dump is."""
        with self._lock:
            is_open = self.state not in (State.CLOSED, State.DETACHED)
            self._report.said |= is_open and self._dump.is_foreign
            if is_open:
                self.hand_over()
                if self._dump.root and self._dump.is_empty and not self._report.said:
                    self._report.said = True
                    text = "MindSpore dumps those of compiled graphs, in PyNative mode of @jit functions and optimizers"
                    _log.warning("nothing was recorded: no kernel ran between start() and stop(). %s", text)
            super().close()
            if is_open:
                self._dump.close()

    def _detach(self) -> None:
        super()._detach()
        if self._run.folders.kernels is not None:
            self._dump.detach()
