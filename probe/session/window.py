# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The collection window: counts steps, and tells which the settings want."""

from __future__ import annotations

from probe.config.settings import Settings


class StepWindow:
    """Counts steps. The number of a step is the loop count plus the init step."""

    def __init__(self) -> None:
        self._first = 0
        self._loop = 0
        self.init_step = -1  # the number that ``begin_at`` gave, or -1

    @property
    def step(self) -> int:
        """The number of the current step."""
        return self._first + self._loop

    def advance(self) -> None:
        """Go on to the next step."""
        self._loop += 1

    def begin_at(self, step: int) -> None:
        """Begin to count at ``step``."""
        self._first, self._loop, self.init_step = step, 0, step

    def wants(self, settings: Settings, rank: int | None) -> bool:
        """Return whether the current step of this rank is to be recorded; without ranks there is only one."""
        return wants_rank(settings, rank) and (not settings.step or self.step in settings.step)


def wants_rank(settings: Settings, rank: int | None) -> bool:
    """Return whether any step of this rank is to be recorded."""
    return settings.dump_enable and (not settings.rank or rank is None or rank in settings.rank)
