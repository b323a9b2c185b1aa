# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The line at the end of a run: where the dump is, or why there is none."""

from __future__ import annotations

import logging
import sys

from probe.config.settings import Settings

_log = logging.getLogger("probe")


class RunReport:
    """Collects what one session has seen.

    Attributes:
        starts: the number of calls of start().
        steps: the number of calls of step().
        has_model: whether start() was given a model.
        written: the folders that dumps were written into, with their steps.
        token_range: the last one that start() was given, or None.
        said: the line was said, or is not needed.
    """

    def __init__(self) -> None:
        self.starts = self.steps = 0
        self.has_model = False
        self.written: dict[str, set[int]] = {}
        self.token_range: object = None
        self.said = False

    def say(self, settings: Settings, rank: int | None) -> None:
        """Log or print the line, once per process, on rank 0 only."""
        if self.said or settings.quiet or rank or settings.level == "debug" or settings.task == "nan_check":
            return
        self.said = True
        if not self.written:
            _log.warning("nothing was recorded: %s", self._reason(settings, rank))
            return
        for folder, steps in self.written.items():
            text = f"{len(steps)} step{'s' * (len(steps) > 1)} in {folder}; look with: probe show {folder}"
            if not self.steps:
                text += " (step() was never called: everything counts as one step)"
            if _log.hasHandlers() and _log.isEnabledFor(logging.INFO):
                _log.info("%s", text)
            else:
                print(f"probe: {text}", file=sys.stderr)

    def _reason(self, settings: Settings, rank: int | None) -> str:
        reached = any(step in settings.step for step in range(self.steps + 1))
        reasons = {
            "start() was never called": not self.starts,
            '"dump_enable" is false': not settings.dump_enable,
            f"rank {rank} is not in the setting rank": settings.rank and rank is not None and rank not in settings.rank,
            f"the training had {self.steps} steps, and none is in the setting step": settings.step and not reached,
            f"the model did not reach the forwards of token_range {self.token_range}": self.token_range is not None,
            "the model has no Cells below it; record level L1 or mix, or put it into a Cell": settings.level == "L0",
            "no listed API was called; start(model) records the Primitives of Cells too": not self.has_model,
        }
        found = [reason for reason, holds in reasons.items() if holds]
        return found[0] if found else "no call was made between start() and stop(), or scope and list matched none"
