# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The numbers of calls go into the file, beside a golden run, and to the rules."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Mapping

from probe.monitor.numbers import HostNumbers
from probe.monitor.rolling.call_rows import StepCalls
from probe.monitor.rolling.golden_calls import GoldenCalls
from probe.series.alarm import Alarm
from probe.series.call_file import CallFile
from probe.store.file_names import CALLS

_log = logging.getLogger("probe")


class CallOutput:
    """Takes the calls of the steps. The numbers of a step may stay on a device until the next one ends.

    Args:
        folder: that of the rank.
        numbers: what has measured the calls.
        golden: the calls of a golden run, or None.
        steps: the number of steps of a round.
        limit: the greatest size of the file, in bytes, or None.
    """

    def __init__(
        self,
        folder: str,
        numbers: HostNumbers,
        golden: GoldenCalls | None,
        steps: int,
        limit: int | None,
    ) -> None:
        self.file = CallFile(os.path.join(folder, CALLS), steps, limit)
        self._numbers = numbers
        self._golden = golden  # None after the first difference too
        self._differences: list[Alarm] = []
        self._written: dict[str, Mapping[str, float]] = {}  # entry -> its numbers, since ``take``
        self._ended: deque[tuple[int, StepCalls]] = deque()

    def put(self, step: int, calls: StepCalls) -> None:
        """Take the calls of a step that has ended."""
        self._ended.append((step, calls))
        self._hand_on(keep=calls.is_open)

    def take(self) -> dict[str, Mapping[str, float]]:
        """Return the numbers that were written since the last time, by their entries."""
        written = self._written
        self._written = {}
        return written

    def differences(self) -> list[Alarm]:
        """Return the first difference from the golden run, once."""
        found = self._differences
        self._differences = []
        return found

    def close(self) -> None:
        """Write what is left, and release the file."""
        self._hand_on(keep=False)
        self.file.close()
        if self._golden is not None and not self._golden.count:
            _log.warning(
                "golden: no call was recorded in the same step: are rolling and seed equal?"
            )

    def _hand_on(self, keep: bool) -> None:
        while len(self._ended) > keep:
            step, calls = self._ended.popleft()
            rows = calls.finish(self._numbers.fetch(calls.scalars))
            if rows:
                self.file.write(step, rows)
            found = None if self._golden is None else self._golden.look(step, rows)
            if found is not None:
                self._differences.append(found)
                self._golden = None
            self._written.update(rows)
