# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of the monitor: each series over the steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from probe.errors import UsageError
from probe.series.file import NOT_MEASURED_BITS, sections, table
from probe.series.online_rules import Alarm, OnlineRules
from probe.series.series_files import find_series
from probe.store.layout import Rank


class Series(NamedTuple):
    """One series of one rank.

    Attributes:
        steps: the steps in which it was measured.
        values: its values.
    """

    steps: Any
    values: Any


class RankSeries:
    """The series of one rank.

    Args:
        path: the file.
        rank: the rank; None where communication was not initialised.

    Raises:
        UsageError: when the file cannot be read.
    """

    def __init__(self, path: str, rank: Rank) -> None:
        self.path, self.rank = path, rank
        try:
            with open(path, "rb") as file:
                content = file.read()
            self._tables = [(section.names, table(content, section)) for section in sections(content)]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from None

    @property
    def names(self) -> list[str]:
        """The names of the series, in the order of the newest section."""
        names = dict.fromkeys(name for found, _ in reversed(self._tables) for name in found[1:])
        return list(names)

    @property
    def steps(self) -> list[int]:
        """The steps that have a row."""
        return sorted({int(step) for _, rows in self._tables for step in rows[:, 0]})

    def __getitem__(self, name: str) -> Series:
        """Return one series. Of several rows of one step, as after a restart, the last counts."""
        found: dict[int, float] = {}
        for names, rows in self._tables:
            if name in names:
                column = rows[:, names.index(name)]
                measured = np.ascontiguousarray(column).view("<u4") != NOT_MEASURED_BITS
                found.update(zip(rows[measured, 0].astype(int).tolist(), column[measured].tolist()))
        steps = sorted(found)
        return Series(np.array(steps), np.array([found[step] for step in steps], np.float32))

    def rows(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (step, name -> value) in the order of the file."""
        for names, rows in self._tables:
            bits = np.ascontiguousarray(rows).view("<u4")
            for row, known in zip(rows, bits != NOT_MEASURED_BITS):
                yield int(row[0]), {names[place]: float(row[place]) for place in range(1, len(names)) if known[place]}

    def alarms(self, thresholds: dict[str, float] | None = None) -> list[Alarm]:
        """Return the alarms of the rules, with these thresholds instead of the defaults."""
        rules = OnlineRules(thresholds)
        return [alarm for step, values in self.rows() for alarm in rules.feed(step, values)]


def open_series(path: str) -> list[RankSeries]:
    """Return the series of all ranks below a folder.

    Raises:
        UsageError: when there are none, or one cannot be read.
    """
    found = find_series(path)
    if not found:
        raise UsageError(f'{path} has no file of the monitor: record with "task": "monitor"')
    return [RankSeries(*item) for item in found]
