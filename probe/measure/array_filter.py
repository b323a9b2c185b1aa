# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Which arrays are written, and how much of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from probe.config.settings import Settings
from probe.config.validators import DimSlice
from probe.measure.statistic_table import STATISTICS, SelectedStatistics
from probe.measure.statistics import statistics
from probe.measure.tensor_reader import Array

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


class ArrayFilter:
    """Decides by the settings ``when``, ``slice``, ``sample_mode`` and ``sample_num``."""

    def __init__(self, settings: Settings) -> None:
        self._when = settings.when
        self._chosen = (
            SelectedStatistics([settings.when.stat]) if settings.when is not None and settings.when.stat else None
        )
        self._pieces = settings.slice
        self._sample = settings.sample_num if settings.sample_mode else -1

    def wants(self, array: Array) -> bool:
        """Return whether an array is written."""
        if self._when is None:
            return True
        if self._chosen is None:
            return any(key.endswith("_count") for key in statistics(array))
        number = self._chosen(array)[STATISTICS[self._when.stat].key]
        return number is not None and _SIGNS[self._when.sign](number, self._when.number)

    def part(self, array: Array) -> Array:
        """Return what is written of it; samples stand in one row."""
        for piece in self._pieces:
            array = _cut(array, piece)
        if self._sample < 0 or array.size <= self._sample:
            return array
        places = np.linspace(0, array.size - 1, self._sample).round().astype(np.int64)
        return np.asarray(array.reshape(-1)[places])


def _cut(array: Array, piece: DimSlice) -> Array:
    if piece.dim >= array.ndim or (piece.size is not None and array.shape[piece.dim] != piece.size):
        return array
    return array[(slice(None),) * piece.dim + (slice(piece.begin, piece.end),)]
