# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The commands ``probe nan``, ``probe ranks`` and ``probe trend``: findings in one run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from probe.errors import UsageError
from probe.reading import text
from probe.reading.commands.arguments import PATH, ROWS, add_parser


def add_findings(commands: Any) -> None:
    """Add ``probe nan``, ``probe ranks`` and ``probe trend``."""
    status = "Exit status: 0 nothing found, 1 something found, 2 wrong use, no dump, or one that cannot be read."
    nan = add_parser(commands, "nan", "where NaN or Inf comes from", "Name the call that makes NaN or Inf.", status)
    ranks = add_parser(
        commands, "ranks", "where ranks disagree", "Check values that must be equal on all ranks.", status
    )
    trend = add_parser(
        commands, "trend", "numbers over steps", "Show a statistic over the steps, and name odd series.", status
    )
    for parser, function in ((nan, run_nan), (ranks, run_ranks), (trend, run_trend)):
        parser.add_argument("path", help=PATH)
        parser.set_defaults(run=function, failed=2)
    for parser in (nan, ranks):
        parser.add_argument("--jobs", type=int, default=0, help="how many processes work (default: one for each core)")
        parser.add_argument("--json", action="store_true", help="write the findings as JSON")
    trend.add_argument("--like", default="parameters_grad", metavar="TEXT", help="tensors whose name contains this")
    trend.add_argument("--stat", default="norm", help="max, min, mean, norm, nan_count, inf_count")
    trend.add_argument("--csv", action="store_true", help="write every number as csv")
    trend.add_argument("--rules", metavar="FILE", help='JSON with other thresholds, as {"spike": 4}')
    trend.add_argument("--rows", type=int, default=ROWS, help="how many series to list (0: all)")


def run_nan(given: argparse.Namespace) -> int:
    """Run ``probe nan``."""
    from probe.reading.nan import find
    from probe.reading.run import open

    said: list[str] = []
    origins = find(open(given.path), max(given.jobs, 0), said)
    if given.json:
        print(json.dumps([origin.to_dict() for origin in origins], indent=1))
    elif not origins:
        print("no call makes NaN or Inf")
    for place, origin in enumerate(origins[:5] if not given.json else []):
        step = "" if origin.step is None else f"step {origin.step}, "
        rank = "" if origin.rank is None else f"rank {origin.rank}, "
        title = "first NaN/Inf" if not place else "independent of it, or later"
        print(text.safe(f"{title}: {step}{rank}{origin.name}" + (f" in {origin.cell}" if origin.cell else "")))
        print(text.safe(f"    {origin.sentence}"))
        if origin.file:
            print(text.safe(f"    {origin.file}:{origin.line}: {origin.source}"))
        if origin.more:
            print(text.safe(f"    from there through {', '.join(origin.more)}"))
    for line in said:
        print(f"probe: {text.safe(line)}", file=sys.stderr)
    return 1 if origins else _unless_unread(said)


def run_ranks(given: argparse.Namespace) -> int:
    """Run ``probe ranks``."""
    from probe.reading.rank_checks import check_ranks
    from probe.reading.run import open

    said: list[str] = []
    found = check_ranks(open(given.path), max(given.jobs, 0), said)
    if given.json:
        print(json.dumps([item._asdict() for item in found], indent=1))
    else:
        for item in found[:ROWS]:
            print(text.safe(f"{'' if item.step is None else f'step {item.step}: '}{item.kind}: {item.sentence}"))
        if found or not said:
            print(f"{len(found)} findings" if found else "the ranks agree")
    for line in said:
        print(f"probe: {text.safe(line)}", file=sys.stderr)
    return 1 if found else _unless_unread(said)


def _unless_unread(said: list[str]) -> int:
    """Return the status where nothing was found: 2 where a dump could not be read, which may hold something."""
    return 2 if any(not line.startswith("close to overflow") for line in said) else 0


def run_trend(given: argparse.Namespace) -> int:
    """Run ``probe trend``."""
    from probe.reading.run import open
    from probe.reading.tables import write_csv
    from probe.reading.trend import collect, findings, sparkline
    from probe.reading.trend_rules import Points

    run = open(given.path)
    points: Points = {}
    series = collect(run.folders, given.like, given.stat, points)
    if given.csv:
        rows = (
            (name, rank, *pair)
            for name, ranks in series.items()
            for rank, steps in ranks.items()
            for pair in steps.items()
        )
        write_csv(sys.stdout, ("tensor", "rank", "step", given.stat), rows)
        return 0
    found = findings(series, run.steps, _thresholds(given.rules), points) if given.stat == "norm" else []
    lines = [["tensor", "rank", "first", "last", "over the steps"]]
    for name, ranks in series.items():
        for rank, steps in ranks.items():
            values = list(steps.values())
            ends = [text.number(values[0]), text.number(values[-1])]
            lines.append([text.safe(name), text.number(rank), *ends, f"[{sparkline(values[-60:])}]"])
    shown = lines[: given.rows + 1] if given.rows > 0 else lines
    print(text.columns(shown, text.terminal_width()))
    if len(lines) > len(shown):
        print(f"  ... and {len(lines) - len(shown)} more")
    for item in found[:ROWS]:
        print(text.safe(f"look here: step {item.step}, {item.name}: {item.sentence}"))
    return int(bool(found))


def _thresholds(path: str | None) -> dict[str, float]:
    from probe.reading.document import read_document
    from probe.reading.trend_rules import RULES

    given = read_document(path) if path else {}
    for name, value in given.items():
        if name not in RULES:
            raise UsageError(f"--rules: {name!r} is not allowed. Allowed: {', '.join(RULES)}.")
        if type(value) not in (int, float):
            raise UsageError(f"--rules: {name}: {value!r} is not allowed. Allowed: a number.")
    return given
