# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Level L2: MindSpore records kernels, and start, stop and step tell it when."""

from __future__ import annotations

import logging
from typing import Any

from probe.capture.kernel.kernel_dump import KernelDump
from probe.capture.pynative.cells import iter_cells
from probe.config.settings import Settings
from probe.errors import UsageError
from probe.session.recording import Recording, SessionParts, State, wants_rank

_log = logging.getLogger("probe")


class KernelRecording(Recording):
    """Lets MindSpore dump kernels; see ``Recording``."""

    unchangeable = "at level L2 an edit has no effect, as MindSpore reads its own once"
    may_renumber = True

    def __init__(self, settings: Settings, parts: SessionParts) -> None:
        super().__init__(settings, parts)
        if parts.kernels is None or not parts.kernels.is_configured:
            parts.kernels = KernelDump(settings)
        self._dump = parts.kernels

    def start(self, token_range: Any) -> None:
        """Let MindSpore dump kernels; see ``Recording``."""
        if token_range is not None:
            raise UsageError(
                'start(): token_range is not allowed at level "L2"; MindSpore\'s dump has no such choice'
            )
        settings = self.settings
        parts = self.parts
        dump = self._dump
        rank = parts.ranks.rank()
        is_wanted = parts.window.wants(settings, parts.ranks.rank())
        parts.report.is_reached |= settings.dump_enable and is_wanted
        if not wants_rank(settings, rank):
            return
        if dump.settings != settings:
            raise UsageError(
                f"start(): MindSpore already dumps kernels into {dump.root}. It reads its configuration once in "
                "a process; other settings need a new process."
            )
        if not dump.is_configured:
            parts.unless_disabled("configuring the kernel dump", lambda: self._configure(rank))
        parts.unless_disabled(
            "describing the model", lambda: dump.describe(parts.models, parts.ranks, iter_cells)
        )
        if is_wanted:
            self.parts.window.state = State.RECORDING
            parts.unless_disabled("dumping kernels", lambda: dump.begin(parts.window.step))
            parts.sigterm.install()
        parts.root = dump.root or parts.root

    def _configure(self, rank: int | None) -> None:
        import mindspore

        self._dump.configure(rank, self.parts.window.step)
        self.parts.folders.note(self._dump.rank_folder)
        if mindspore.get_context("mode") == mindspore.PYNATIVE_MODE:
            text = "level L2 in PyNative mode: MindSpore dumps the kernels of compiled functions and optimizers only"
            self.parts.log_once(text)

    def stop(self) -> None:
        """Let MindSpore dump no more."""
        if self.parts.window.state is State.RECORDING:
            self.parts.window.state = State.PAUSED
            self.parts.sigterm.remove()
            self._dump.end()

    def end_step(self, is_last: bool = False) -> None:
        """Measure the arrays of the step."""
        if self.parts.window.state is State.PAUSED:
            self.parts.window.state = State.IDLE
            self.parts.unless_disabled("measuring kernels", self._finish_step)

    def _finish_step(self) -> None:
        step = self.parts.window.step
        if self._dump.finish_step(step):
            self.parts.report.add_step(step, self._dump.root, True)

    def begin_training(self, network: Any, loss: Any) -> Any:
        """Return the model for start(); see ``Recording``."""
        return None if self.parts.models is not None else network

    def close(self) -> None:
        """Measure the rest, and say why nothing was dumped."""
        dump = self._dump
        report = self.parts.report
        report.said |= dump.is_foreign
        if dump.root and dump.is_empty and not report.said:
            report.said = True
            text = "MindSpore dumps those of compiled graphs, in PyNative mode of @jit functions and optimizers"
            _log.warning("nothing was recorded: no kernel ran between start() and stop(). %s", text)
        dump.close()

    def detach(self) -> None:
        """Release everything in a forked child; see ``Recording``."""
        self.parts.window.state = State.IDLE
        self._dump.detach()
