# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""When a watched run is ended: its loss is NaN/Inf, it has as many steps as the other one, or its time is used up."""

from __future__ import annotations

import math
import time

from probe.errors import UsageError
from probe.reading.one_run.health.rows import read_rows

#: seconds between two looks at the rows
_PAUSE = 2.0
_LOSS = "loss"


class WatchEnd:
    """Tells whether a watched run has told enough.

    Args:
        dump: the folder of its rows.
        limit: the moment of ``time.monotonic`` at which it is ended.
        last: the last step that is of use; None for all.
        pause: seconds between two looks at the rows.
    """

    def __init__(
        self, dump: str, limit: float, last: int | None = None, pause: float = _PAUSE
    ) -> None:
        self._dump = dump
        self._limit = limit
        self._last = last
        self._pause = pause
        self._next_look = time.monotonic() + pause

    def __call__(self) -> bool:
        """Return whether it has told enough."""
        now = time.monotonic()
        if now > self._limit:
            return True
        if now < self._next_look:
            return False
        self._next_look = now + self._pause
        return self._has_told()

    def _has_told(self) -> bool:
        """Return whether the rows have a loss that is NaN/Inf, or the last step that is of use."""
        try:
            ranks = read_rows(self._dump).ranks
        except UsageError:  # the file is not there yet
            return False
        for rank in ranks:
            if self._last is not None and rank.steps and rank.steps[-1] > self._last:
                return True
            if _LOSS in rank.names and not all(map(math.isfinite, rank[_LOSS].values)):
                return True
        return False
