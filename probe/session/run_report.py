# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The line at the end of a run: where the dump is, or why there is none."""

from __future__ import annotations

import logging
import shlex
import sys

from probe.config.settings import Settings
from probe.naming import ranges

_log = logging.getLogger("probe")


class RunReport:
    """Collects what one session has seen.

    Attributes:
        starts: the number of calls of start().
        steps: the number of calls of step().
        is_reached: whether start() was called in a step of the setting step.
        has_model: whether start() was given a model.
        is_made_again: the program has made its debugger again, as a notebook does.
        token_range: the last one that start() was given, or None.
        said: the line was said, or is not needed.
    """

    def __init__(self) -> None:
        self.starts = self.steps = 0
        self.is_reached = self.has_model = self.is_made_again = self.said = False
        self.token_range: object = None
        self._folders: dict[str, int] = {}
        self._lost: list[int] = []
        self._has_lost = False

    def add_step(self, step: int, folder: str, is_written: bool) -> None:
        """Count a recorded step, and note whether its documents are on disk."""
        if is_written:
            self._folders[folder] = self._folders.get(folder, 0) + 1
            return
        self._lost.append(step)
        self._has_lost = True
        if len(self._lost) == 1:
            _log.warning("step %d has no documents: they could not be written", step)

    def say(self, settings: Settings, rank: int | None) -> None:
        """Log or print the line, once per process, on rank 0 only. Steps without documents are said on each rank."""
        if self._lost:
            _log.warning("these steps have no documents, they could not be written: %s", ", ".join(ranges(self._lost)))
            self._lost = []
        if self.said or settings.quiet or rank or settings.level == "debug" or settings.task == "nan_check":
            return
        self.said = True
        if not self._folders:
            _log.warning("nothing was recorded: %s", self._reason(settings, rank))
            return
        for folder, steps in self._folders.items():
            text = f"{steps} step{'s' * (steps != 1)} in {folder}; look with: probe show {shlex.quote(folder)}"
            if not self.steps:
                text += " (step() was never called: everything counts as one step)"
            if _log.hasHandlers() and _log.isEnabledFor(logging.INFO):
                _log.info("%s", text)
            else:
                print(f"probe: {text}", file=sys.stderr)

    def _reason(self, settings: Settings, rank: int | None) -> str:
        has_no_cells = settings.level == "L0" and not (settings.scope or settings.list or settings.exclude)
        reasons = {
            "the documents could not be written": self._has_lost,
            "start() was never called": not self.starts,
            '"dump_enable" is false': not settings.dump_enable,
            f"rank {rank} is not in the setting rank": settings.rank and rank is not None and rank not in settings.rank,
            "step() was never called, and step 0 is not in the setting step": not (self.steps or self.is_reached),
            f"the training had {self.steps} steps, and none is in the setting step": not self.is_reached,
            f"the model did not reach the forwards of token_range {self.token_range}": self.token_range is not None,
            "the model has no Cells below it; record level L1 or mix, or put it into a Cell": has_no_cells,
            "no listed API was called; start(model) records the Primitives of Cells too": not self.has_model,
        }
        found = [reason for reason, holds in reasons.items() if holds]
        return found[0] if found else "no call was made between start() and stop(), or scope and list matched none"
