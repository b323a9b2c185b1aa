# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rounds of rolling records: the calls that each step records, and rolling.json, which notes their lengths."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Set

from probe.config.settings import Settings
from probe.monitor.rolling.shares import Shares
from probe.monitor.rolling.stride import StepTimes, Stride
from probe.store import file_io
from probe.store.error_log import ErrorLog
from probe.store.file_names import ROLLING

_log = logging.getLogger("probe")


class Rounds:
    """Chooses the calls of each step. ``rolling`` of the settings is the number of steps of a round."""

    def __init__(self, folder: str, settings: Settings, errors: ErrorLog) -> None:
        self._settings = settings
        self._errors = errors
        self._folder = folder
        self._noted: list[dict[str, int]] = []  # the steps from which a round has so many steps
        self._stride = Stride(settings.rolling, settings.budget)
        self._shares = Shares(self._stride.every, settings.rolling_seed)

    @property
    def steps(self) -> int:
        """The number of steps of a round."""
        return self._shares.steps

    def is_bare(self, step: int) -> bool:
        """Return whether a step records nothing, so that its time is that of a bare one."""
        return self._stride.is_bare(step)

    def of(self, step: int) -> Mapping[str, set[int]]:
        """Return the numbers of the calls that this step records, by their keys."""
        return self._shares.of(step)

    def know(self, known: Mapping[str, int], keys: Set[str]) -> None:
        """Take the most calls that a step had of each key, and all keys that can be chosen."""
        self._shares.know(known, keys)

    def take(self, times: StepTimes) -> bool:
        """Take the times of a step; return whether rounds have another number of steps from the next step on."""
        every = self._stride.take(times)
        if every is None:
            return False
        self._shares = Shares(every, self._settings.rolling_seed)
        return True

    def note(self, step: int) -> None:
        """Write how many steps a round has from a step on."""
        if self._noted:
            _log.info("rolling: from step %d on a round has %d steps", step, self.steps)
        self._noted.append({"step": step, "every": self._stride.every, "round": self.steps})
        noted = {
            "budget": self._settings.budget,
            "seed": self._settings.rolling_seed,
            "rounds": self._noted,
        }
        with self._errors.guard("writing the rounds of rolling records"):
            file_io.make_dirs(self._folder)
            with file_io.atomic_write(os.path.join(self._folder, ROLLING)) as file:
                json.dump(noted, file, indent=1)
