# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe watch``: how a training goes, from the file of the monitor."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, say
from probe.reading.commands.arguments import ROWS, names, read_thresholds
from probe.reading.commands.outlet import is_cut
from probe.reading.dumps import text

if TYPE_CHECKING:
    from probe.reading.dumps.names import Names
    from probe.reading.one_run.health.step import HealthFinding
    from probe.series.alarm import Alarm
    from probe.series.file import RankSeries
    from probe.series.series import Follower

_PAUSE = 1.0
_LETTERS = 60  # of a line of a series


def run_watch(given: argparse.Namespace) -> int:
    """Run ``probe watch``."""
    from probe.reading.commands.others import headline
    from probe.reading.one_run.health.rows import alarm_finding, gaps_of
    from probe.reading.one_run.health.step import FAULT
    from probe.series.neighbour import around
    from probe.series.rules import ONLINE
    from probe.series.series import Follower, open_series

    asked = names(given)
    thresholds = read_thresholds(given.rules, ONLINE)
    ranks = open_series(given.path)
    if given.follow and any(os.path.isdir(rank.path) for rank in ranks):
        raise UsageError(say("error.follow"))
    if given.csv:
        _write_csv(ranks, given.csv, asked)
        return 0
    if given.msprobe_csv or given.tensorboard:
        return _export(ranks, given)
    followers = {rank.path: Follower(thresholds) for rank in ranks}
    alarms = [followers[rank.path].begin(rank) for rank in ranks]
    for own, apart in zip(alarms, around(ranks)):
        own.extend(apart)
    found = _health(given.path)
    gaps = gaps_of(ranks)
    is_strange = any(alarms) or any(item.weight == FAULT for item in found)
    status = 1 if is_strange else 2 * bool(gaps)
    if given.json:
        listed = [_rank_dict(*pair, asked) for pair in zip(ranks, alarms)]
        told = {
            "ranks": listed,
            "findings": [item.to_dict() for item in found],
            "status": status,
        }
        print(json.dumps(told, indent=1))
        return status
    heaviest = [
        alarm_finding(alarm, rank.rank).whole for rank, own in zip(ranks, alarms) for alarm in own
    ]
    if head := headline([*heaviest, *(item.whole for item in found if item.weight == FAULT)]):
        print(text.safe(head.text(given.lang)))
    for rank, own in zip(ranks, alarms):
        show_rows(rank, own, given.lang, asked, given.rows)
    for item in found[:ROWS]:
        print(text.safe(item.whole.text(given.lang)))
    if given.follow:  # the training goes on: rows that are lacking now may come
        return int(_follow(given, followers, thresholds) or is_strange)
    for gap in gaps:
        print(text.safe(gap.text(given.lang)))
    return status


def show_rows(
    rank: RankSeries, alarms: list[Alarm], language: str, asked: Names, rows: int
) -> None:
    """Print the series of one rank that are asked for, and alarms; ``rows`` 0 prints all series."""
    from probe.reading.one_run.trend import sparkline, thinned

    steps = rank.steps
    seconds = rank["seconds"].values
    pace = (
        say("watch.pace", seconds=float(sorted(seconds)[len(seconds) // 2]))
        if len(seconds)
        else NOTHING
    )
    name = NOTHING if rank.rank is None else say("watch.rank", rank=rank.rank)
    facts = {"count": len(steps), "newest": steps[-1]} if steps else {}
    print(
        say("watch.steps" if steps else "watch.empty", rank=name, pace=pace, **facts).text(language)
    )
    found = _names(rank, asked)
    head = [say(key) for key in ("watch.series", "trend.first", "trend.last", "trend.line")]
    lines = [[cell.text(language) for cell in head]]
    for item in found[:rows] if rows > 0 else found:
        values = rank[item].values.tolist()
        ends = [text.number(values[0]), text.number(values[-1])] if values else ["", ""]
        lines.append([text.safe(item), *ends, f"[{sparkline(thinned(values, _LETTERS, float))}]"])
    print(text.columns(lines, text.terminal_width()))
    if len(found) >= len(lines):
        print(f"  {say('trend.more', count=len(found) - len(lines) + 1).text(language)}")
    for rule in dict.fromkeys(alarm.rule for alarm in alarms):
        first, *others = (alarm for alarm in alarms if alarm.rule == rule)
        _tell(first, language, len(others))


def _names(rank: RankSeries, asked: Names) -> list[str]:
    """Return the names of the series that are shown: the main ones where nothing is asked."""
    from probe.series.series_name import is_main, parse

    if any(asked):
        return [name for name in rank.names if asked.fits(name, parse(name).owner)]
    return [name for name in rank.names if is_main(name)]


def series_dict(
    name: str, rank: Any, steps: Iterable[int], values: Iterable[float]
) -> dict[str, Any]:
    """Return a series of one rank for JSON."""
    return {"name": name, "rank": rank, "steps": list(steps), "values": list(values)}


def _rank_dict(rank: RankSeries, alarms: list[Alarm], asked: Names) -> dict[str, Any]:
    series = [
        series_dict(name, rank.rank, *(it.tolist() for it in rank[name]))
        for name in _names(rank, asked)
    ]
    return {
        "rank": rank.rank,
        "rows": len(rank.steps),
        "series": series,
        "alarms": [it.to_dict() for it in alarms],
    }


def _health(path: str) -> list[HealthFinding]:
    """Return what the dumps in the folder show by themselves, without notes."""
    from probe.reading.dumps.run import open
    from probe.reading.one_run.health.run_look import look_at_run
    from probe.reading.one_run.health.step import NOTE

    try:
        look = look_at_run(open(path))
    except UsageError:
        return []
    return [item for item in [*look.findings, *look.series] if item.weight != NOTE]


def _tell(alarm: Alarm, language: str, more: int = 0) -> None:
    others = say("watch.and_more", count=more) if more else NOTHING
    said = say("watch.alarm", rule=alarm.rule, series=alarm.series, said=alarm.said, more=others)
    print(text.safe(said.text(language)), flush=True)


def _follow(
    given: argparse.Namespace, followers: dict[str, Follower], thresholds: dict[str, float]
) -> bool:
    """Print each new alarm until the user or the reader of the output ends it; return whether there was one."""
    from probe.series.series import Follower, find_series

    is_strange = False
    try:
        while True:
            if is_cut():
                return is_strange
            time.sleep(_PAUSE)
            for path, _ in find_series(given.path):
                follower = followers.setdefault(path, Follower(thresholds))
                with contextlib.suppress(FileNotFoundError):  # a new run replaces it now
                    for alarm in follower.look(path):
                        is_strange = True
                        _tell(alarm, given.lang)
    except KeyboardInterrupt:
        return is_strange


def _export(ranks: list[RankSeries], given: argparse.Namespace) -> int:
    from probe.reading.one_run.trend import write_tensorboard
    from probe.series.msprobe_csv import write_msprobe_csv

    if given.msprobe_csv:
        files = write_msprobe_csv(ranks, given.msprobe_csv)
        print(
            say("watch.csv", count=len(files), folder=text.safe(given.msprobe_csv)).text(given.lang)
        )
    if given.tensorboard:
        count = write_tensorboard(ranks, given.tensorboard)
        folder = text.safe(given.tensorboard)
        print(say("watch.tensorboard", count=count, folder=folder).text(given.lang))
    return 0


def _write_csv(ranks: list[RankSeries], path: str, asked: Names) -> None:
    from probe.reading.dumps.tables import table_file, write_csv
    from probe.series.series_name import parse

    rows = (
        (name, rank.rank, step, value)
        for rank in ranks
        for name in rank.names
        if asked.fits(name, parse(name).owner)
        for step, value in zip(*(column.tolist() for column in rank[name]))
    )
    with table_file(path) as file:
        write_csv(file, ("series", "rank", "step", "value"), rows)
