# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds the files of the monitor, and judges them. Finding imports nothing heavy: every reading command may ask."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from probe.errors import UsageError
from probe.findings.sentence import say
from probe.store.file_names import MONITOR, SERIES, TRAINER_CSV, Rank, rank_name, rank_of

if TYPE_CHECKING:
    from probe.series.alarm import Alarm
    from probe.series.file import RankSeries, SeriesTail


def find_series(path: str) -> list[tuple[str, Rank]]:
    """Return the files of the monitor below a folder with their ranks; a file itself may be given too."""
    if os.path.isfile(path) and os.path.basename(path) == SERIES:
        return [(path, rank_of(os.path.basename(os.path.dirname(os.path.abspath(path)))))]
    for folder in (os.path.join(path, MONITOR), path):
        names = os.listdir(folder) if os.path.isdir(folder) else []
        ranks = {name: rank_of(name) for name in names}
        found = [
            (os.path.join(folder, name, SERIES), rank)
            for name, rank in ranks.items()
            if name == rank_name(rank)
        ]
        found = [item for item in found if os.path.isfile(item[0])]
        if found:
            return sorted(found, key=lambda item: -1 if item[1] is None else item[1])
    own = os.path.join(path, SERIES)
    if os.path.isfile(own):
        return [(own, rank_of(os.path.basename(os.path.abspath(path))))]
    return _find_csv(path)


def _find_csv(path: str) -> list[tuple[str, Rank]]:
    """Return the folders of TrainerMon in a folder, or itself, with their ranks; of several of a rank the newest."""
    places = (
        [path, *(os.path.join(path, name) for name in os.listdir(path))]
        if os.path.isdir(path)
        else []
    )
    newest: dict[int | None, str] = {}
    for folder in sorted(filter(os.path.isdir, places), key=os.path.getmtime):
        if any(map(TRAINER_CSV.fullmatch, os.listdir(folder))):
            words = os.path.basename(os.path.abspath(folder)).split(
                "-"
            )  # as Nov25_20-12-58-rank0-1ab721d1, or rank0
            newest[next((rank for rank in map(rank_of, words) if rank is not None), None)] = folder
    return [
        (newest[rank], rank)
        for rank in sorted(newest, key=lambda rank: -1 if rank is None else rank)
    ]


def open_series(path: str) -> list[RankSeries]:
    """Return the series of all ranks below a folder; raise UsageError when there are none, or one cannot be read."""
    found = find_series(path)
    if not found:
        raise UsageError(say("error.no_monitor", path=path))
    return [opened(place, rank) for place, rank in found]


def opened(place: str, rank: Rank) -> RankSeries:
    """Return the series of one rank: of a file of the monitor, or a folder of TrainerMon."""
    from probe.series.file import RankSeries
    from probe.series.msprobe_csv import CsvSeries

    return (CsvSeries if os.path.isdir(place) else RankSeries)(place, rank)


class Follower:
    """Lets the rules look at a file that grows. Each row is read and judged once, with these thresholds if given."""

    def __init__(self, thresholds: Mapping[str, float] | None = None) -> None:
        from probe.series.online_rules import OnlineRules

        self._new_rules = partial(OnlineRules, thresholds)
        self._rules = OnlineRules(thresholds)
        self._tail: SeriesTail | None = None

    def begin(self, rank: RankSeries) -> list[Alarm]:
        """Follow the rows that were read already; return their alarms, without those of skipped updates."""
        from probe.series.skipped import is_of_skip, skipped_steps

        self._tail = rank.tail()
        skipped = skipped_steps(rank)
        found = [alarm for row in rank.rows() for alarm in self._rules.feed(*row)]
        return [item for item in found if not is_of_skip(item, skipped)]

    def look(self, path: str) -> list[Alarm]:
        """Follow the rows since the last look, of a new file all; return the alarms. Raises OSError and ValueError."""
        from probe.series.file import SeriesTail

        self._tail = self._tail or SeriesTail(path)
        rows = self._tail.new_rows()
        if self._tail.is_restarted:
            self._rules = self._new_rules()
        return [alarm for row in rows for alarm in self._rules.feed(*row)]
