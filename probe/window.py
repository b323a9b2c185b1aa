# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which step this is, and whether the settings want it."""

from __future__ import annotations

from probe.config.settings import Settings
from probe.errors import UsageError


class StepWindow:
    """Counts steps. The number of a step is the loop count plus the init step."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._first = 0
        self._loop = 0

    @property
    def step(self) -> int:
        """The number of the current step."""
        return self._first + self._loop

    def next(self) -> None:
        """Go on to the next step."""
        self._loop += 1

    def begin_at(self, step: int) -> None:
        """Begin to count at ``step``."""
        self._first, self._loop = step, 0

    def wants(self, rank: int | None) -> bool:
        """Return whether the current step of this rank is to be recorded; without ranks there is only one."""
        wanted = self.settings
        return wanted.dump_enable and (not wanted.step or self.step in wanted.step) and self.wants_rank(rank)

    def wants_rank(self, rank: int | None) -> bool:
        """Return whether this rank is to be recorded, in the steps that are."""
        return not self.settings.rank or rank is None or rank in self.settings.rank


def check_mode() -> None:
    """Make sure that calls can be seen.

    Raises:
        UsageError: in GRAPH_MODE.
    """
    import mindspore
    from mindspore import context

    mode = (
        context._get_mode() if hasattr(context, "_get_mode") else mindspore.get_context("mode")
    )  # thirty times faster
    if mode != mindspore.PYNATIVE_MODE:
        raise UsageError(
            "start(): MindSpore runs in GRAPH_MODE, where calls cannot be seen. "
            "Call mindspore.set_context(mode=mindspore.PYNATIVE_MODE) first."
        )
