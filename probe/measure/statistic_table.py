# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Statistics that the user chooses, one entry in a table for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from probe.measure.statistics import Numbers, as_real, statistics
from probe.measure.tensor_reader import Array


class Statistic(NamedTuple):
    """How one statistic is obtained."""

    key: str  # its key in a record
    #: an array of real numbers -> the number of such elements; None for one of the four of ``statistics``
    host: Callable[[Array], int] | None = None
    #: the Primitive that finds such elements in a tensor of floats, and its further operand, as ``("Equal", 0.0)``, or
    #: without one the tensor itself; empty where the four or the shape tell their number
    device: tuple[Any, ...] = ()


def _count(predicate: Callable[[Array], Any]) -> Callable[[Array], int]:
    return lambda array: int(np.count_nonzero(predicate(array)))


#: by the names that the settings have for them
STATISTICS = {
    "max": Statistic("Max"),
    "min": Statistic("Min"),
    "mean": Statistic("Mean"),
    "avg": Statistic("Mean"),
    "l2norm": Statistic("Norm"),
    "count": Statistic("count", lambda array: int(array.size)),
    "nan count": Statistic("nan_count", _count(np.isnan), ("NotEqual",)),
    "negative inf count": Statistic("negative_inf_count", _count(lambda a: a == -np.inf), ("Equal", -np.inf)),
    "positive inf count": Statistic("positive_inf_count", _count(lambda a: a == np.inf), ("Equal", np.inf)),
    "negative zero count": Statistic("negative_zero_count", _count(lambda a: a < 0), ("Less", 0.0)),
    "zero count": Statistic("zero_count", _count(lambda a: a == 0), ("Equal", 0.0)),
    "positive zero count": Statistic("positive_zero_count", _count(lambda a: a > 0), ("Greater", 0.0)),
}


class SelectedStatistics:
    """Takes the chosen statistics of an array, by the keys of ``STATISTICS``.

    >>> SelectedStatistics(["max", "zero count"])(np.array([0.0, 2.0], np.float32))
    {'Max': 2.0, 'zero_count': 1}
    """

    def __init__(self, names: Iterable[str]) -> None:
        wanted = set(names)
        self.table = list({entry.key: entry for name, entry in STATISTICS.items() if name in wanted}.values())
        self._four = any(entry.host is None for entry in self.table)

    def __call__(self, array: Array) -> Numbers:
        """Return the chosen statistics; the elements of a complex array are counted by their absolute values."""
        four = statistics(array) if self._four else {}
        array = as_real(array)
        return {entry.key: four.get(entry.key) if entry.host is None else entry.host(array) for entry in self.table}
