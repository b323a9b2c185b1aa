# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Settings ``when``, ``slice`` and ``sample_mode``: select the arrays and the elements to write."""

from __future__ import annotations

from operator import eq, ge, gt, le, lt, ne

import numpy as np

from probe.config.settings import Settings
from probe.measure.statistic_table import STATISTICS, SelectedStatistics
from probe.measure.statistics import FOUR, statistics
from probe.measure.tensor_reader import Array

_SIGNS = {">": gt, ">=": ge, "<": lt, "<=": le, "==": eq, "!=": ne}


class ArrayFilter:
    """Decides by the settings ``when``, ``slice``, ``sample_mode`` and ``sample_num``."""

    def __init__(self, settings: Settings) -> None:
        self._when, self._slices = settings.when, settings.slice
        stat = settings.when.stat if settings.when else ""
        self._statistics = SelectedStatistics([stat]) if stat else statistics
        self._sample = settings.sample_num if settings.sample_mode else -1

    def wants(self, array: Array) -> bool:
        """Return whether an array is written."""
        if self._when is None:
            return True
        numbers = self._statistics(array)
        if not self._when.stat:
            return len(numbers) > len(FOUR)
        number = numbers[STATISTICS[self._when.stat].key]
        return number is not None and bool(_SIGNS[self._when.sign](number, self._when.number))

    def part(self, array: Array) -> Array:
        """Return the part of an array that is written; samples stand in one row."""
        for one in self._slices:
            if one.dim < array.ndim and one.size in (None, array.shape[one.dim]):
                array = array[(slice(None),) * one.dim + (slice(one.begin, one.end),)]
        if self._sample < 0 or array.size <= self._sample:
            return array
        places = np.linspace(0, array.size - 1, self._sample).round().astype(np.int64)
        return np.asarray(array.reshape(-1)[places])
