# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe watch``: how a training goes, from the file of the monitor."""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import TYPE_CHECKING, Any

from probe.reading.commands.arguments import ROWS, add_parser, read_thresholds
from probe.reading.dumps import text

if TYPE_CHECKING:
    from probe.series.series import RankSeries

#: series that are shown without --like
_FIRST = ("loss", "total", "scale", "logged")
_PAUSE = 1.0


def add_watch(commands: Any) -> None:
    """Add ``probe watch``."""
    parser = add_parser(
        commands,
        "watch",
        "how a training goes",
        'Show the series of task "monitor", and the rules that hold. The training may still run.',
        "Exit status: 0 no rule holds, 1 one holds, 2 wrong use, or no file of the monitor.",
    )
    parser.add_argument("path", help="a dump_path, or the file of one rank")
    parser.add_argument(
        "--like", default="", metavar="TEXT", help="series whose name contains this, instead of the main ones"
    )
    parser.add_argument("--follow", action="store_true", help="go on, and print each new alarm, until Ctrl-C")
    parser.add_argument("--csv", action="store_true", help="write every number of the series as csv")
    parser.add_argument("--msprobe-csv", metavar="FOLDER", help="write csv files with the columns of msprobe's monitor")
    parser.add_argument("--tensorboard", metavar="FOLDER", help="write event files for TensorBoard")
    parser.add_argument("--rules", metavar="FILE", help='JSON with other thresholds, as {"spike": 8}')
    parser.add_argument("--rows", type=int, default=ROWS, help="how many series to list (0: all)")
    parser.set_defaults(run=run_watch, failed=2)


def run_watch(given: argparse.Namespace) -> int:
    """Run ``probe watch``."""
    from probe.series.series import open_series
    from probe.series.table import ONLINE

    thresholds, ranks = read_thresholds(given.rules, ONLINE), open_series(given.path)
    if given.csv:
        _write_csv(ranks, given.like)
        return 0
    if given.msprobe_csv or given.tensorboard:
        return _export(ranks, given)
    count = 0
    for rank in ranks:
        count += _show(rank, given, thresholds)
    if given.follow:
        return _follow(given, thresholds, count)
    return int(bool(count))


def _show(rank: RankSeries, given: argparse.Namespace, thresholds: dict[str, float]) -> int:
    """Print the series and alarms of a rank; return the number of alarms."""
    from probe.reading.one_run.trend import sparkline
    from probe.series.online_rules import kind_of

    steps, seconds = rank.steps, rank["seconds"].values
    pace = f", {float(sorted(seconds)[len(seconds) // 2]):.3g} s a step" if len(seconds) else ""
    name = "" if rank.rank is None else f"rank {rank.rank}: "
    print(f"{name}{len(steps)} steps, the newest is {steps[-1] if steps else 'none'}{pace}")
    names = [
        item
        for item in rank.names
        if (given.like in item if given.like else kind_of(item) in _FIRST or "learning_rate" in item)
    ]
    lines = [["series", "first", "last", "over the steps"]]
    for item in names[: given.rows] if given.rows > 0 else names:
        values = rank[item].values.tolist()
        ends = [text.number(values[0]), text.number(values[-1])] if values else ["", ""]
        lines.append([text.safe(item), *ends, f"[{sparkline(_thinned(values))}]"])
    print(text.columns(lines, text.terminal_width()))
    if len(names) >= len(lines):
        print(f"  ... and {len(names) - len(lines) + 1} more")
    alarms = rank.alarms(thresholds)
    for rule in dict.fromkeys(alarm.rule for alarm in alarms):
        first, *others = (alarm for alarm in alarms if alarm.rule == rule)
        more = f" ({len(others)} more)" if others else ""
        print(text.safe(f"look here: {rule}: {first.series}: {first.sentence}{more}"))
    return len(alarms)


def _thinned(values: list[float]) -> list[float]:
    """Return at most 60 of many values; of each group the one farthest from the middle, so that no peak is lost."""
    if len(values) <= 60:
        return values
    size = -(-len(values) // 60)
    groups = [values[place : place + size] for place in range(0, len(values), size)]
    return [next((value for value in group if math.isnan(value)), max(group, key=abs)) for group in groups]


def _follow(given: argparse.Namespace, thresholds: dict[str, float], count: int) -> int:
    """Print each new alarm until the user interrupts."""
    from probe.series.series import open_series

    seen = {rank.path: len(rank.alarms(thresholds)) for rank in open_series(given.path)}
    try:
        while True:
            time.sleep(_PAUSE)
            for rank in open_series(given.path):
                alarms = rank.alarms(thresholds)
                for alarm in alarms[seen.get(rank.path, 0) :]:
                    print(text.safe(f"look here: {alarm.rule}: {alarm.series}: {alarm.sentence}"), flush=True)
                seen[rank.path] = len(alarms)
    except KeyboardInterrupt:
        return int(any(seen.values()) or bool(count))


def _export(ranks: list[RankSeries], given: argparse.Namespace) -> int:
    from probe.reading.one_run.series_views import write_msprobe_csv, write_tensorboard

    if given.msprobe_csv:
        print(f"{len(write_msprobe_csv(ranks, given.msprobe_csv))} csv files are in {text.safe(given.msprobe_csv)}")
    if given.tensorboard:
        count, folder = write_tensorboard(ranks, given.tensorboard), text.safe(given.tensorboard)
        print(f"{count} series are in {folder}: tensorboard --logdir {folder}")
    return 0


def _write_csv(ranks: list[RankSeries], like: str) -> None:
    from probe.reading.dumps.tables import write_csv

    rows = (
        (name, rank.rank, step, value)
        for rank in ranks
        for name in rank.names
        if like in name
        for step, value in zip(*(column.tolist() for column in rank[name]))
    )
    write_csv(sys.stdout, ("series", "rank", "step", "value"), rows)
