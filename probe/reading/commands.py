# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The commands that read dumps: what each is given, and what it prints."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from probe.errors import UsageError
from probe.reading import text

#: how many rows are shown where nothing is said
ROWS = 40
_PATH = "a dump_path, or a step or rank folder in it"


def add_commands(commands: Any) -> None:
    """Add the commands to the parser of the command line."""
    from probe.reading.compare.command import add_command

    _add_show(commands)
    add_command(commands)
    _add_findings(commands)
    recover = _command(
        commands,
        "recover",
        "write the documents that a dead process could not",
        "Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
    )
    recover.add_argument("path", help=_PATH)
    recover.set_defaults(run=run_recover)


def _command(commands: Any, name: str, short: str, long: str, epilog: str = "") -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=short, description=long, epilog=epilog)
    return made


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose steps and ranks."""
    parser.add_argument("--step", default="", metavar="STEPS", help="only these steps, as 0,4-6")
    parser.add_argument("--rank", default="", metavar="RANKS", help="only these ranks, as 0-7")


def _add_show(commands: Any) -> None:
    show = _command(
        commands,
        "show",
        "what is in a dump",
        "Show what is in a dump; with a question, the tensors that fit.",
        "Exit status: 0, 1 when a dump is broken or there is none, 2 for wrong arguments.",
    )
    show.add_argument("path", help=_PATH)
    show.add_argument("--name", default="", metavar="TEXT", help="tensors whose name contains this")
    show.add_argument("--regex", default="", help="tensors in whose name this regular expression is found")
    show.add_argument("--cell", default="", metavar="PATH", help="calls in Cells whose path contains this")
    add_choice(show)
    show.add_argument("--nonfinite", action="store_true", help="tensors that hold NaN or Inf")
    show.add_argument("--raised", action="store_true", help="calls that raised")
    show.add_argument(
        "--sort", default="", metavar="KEY", help="greatest first: max, min, mean, norm, nan_count, inf_count"
    )
    show.add_argument("--stack", action="store_true", help="with the lines of code that each call came from")
    show.add_argument("--rows", type=int, default=-1, help="how many tensors to list (0: all)")
    show.add_argument("--format", choices=("text", "csv", "json"), default="text", help="how they are written")
    show.set_defaults(run=run_show)


def run_show(given: argparse.Namespace) -> int:
    """Run ``probe show``."""
    from probe.reading.query import Query, answer_to
    from probe.reading.run import open
    from probe.reading.show import overview

    width = text.terminal_width()
    query = Query(
        given.name, given.regex, given.cell, given.step, given.rank, given.nonfinite, given.raised, given.sort,
        0, given.stack,
    )  # fmt: skip
    run = open(given.path)
    if query.is_empty and given.format == "text":
        described, broken = overview(run, 16 if given.rows < 0 else given.rows or sys.maxsize, width)
        print(described)
        return int(broken > 0)
    default = ROWS if width and given.format == "text" else 0
    query = Query(**{**vars(query), "rows": default if given.rows < 0 else given.rows})
    notes, broken = answer_to(run, query, given.format, width)
    for note in notes:
        print(f"probe: {text.safe(note)}", file=sys.stderr)
    return int(broken > 0)


def run_recover(given: argparse.Namespace) -> int:
    """Run ``probe recover``."""
    from probe.reading.recover import recover

    outcomes = recover(given.path)
    for outcome in outcomes:
        print(outcome.text, file=sys.stdout if outcome.well else sys.stderr)
    return int(not all(outcome.well for outcome in outcomes))


def need(condition: bool, message: str) -> None:
    """Raise UsageError with this message unless the condition holds."""
    if not condition:
        raise UsageError(message)


def _add_findings(commands: Any) -> None:
    status = "Exit status: 0 nothing found, 1 something found, 2 wrong use or no dump."
    nan = _command(commands, "nan", "where NaN or Inf comes from", "Name the call that makes NaN or Inf.", status)
    ranks = _command(commands, "ranks", "where ranks disagree", "Check what must be equal on all ranks.", status)
    trend = _command(
        commands, "trend", "numbers over steps", "Show a statistic over the steps, and what is odd.", status
    )
    for parser, function in ((nan, run_nan), (ranks, run_ranks), (trend, run_trend)):
        parser.add_argument("path", help=_PATH)
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
    return int(bool(origins))


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
        print("the ranks agree" if not found else f"{len(found)} findings")
    for line in said:
        print(f"probe: {text.safe(line)}", file=sys.stderr)
    return int(bool(found))


def run_trend(given: argparse.Namespace) -> int:
    """Run ``probe trend``."""
    from probe.reading.run import open
    from probe.reading.tables import write_csv
    from probe.reading.trend import findings, sparkline

    run = open(given.path)
    series = run.trend(given.like, given.stat)
    if given.csv:
        rows = (
            (name, rank, *pair)
            for name, ranks in series.items()
            for rank, steps in ranks.items()
            for pair in steps.items()
        )
        write_csv(sys.stdout, ("tensor", "rank", "step", given.stat), rows)
        return 0
    found = findings(series, run.steps, _thresholds(given.rules)) if given.stat == "norm" else []
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
    from probe.reading.trend import RULES

    given = read_document(path) if path else {}
    for name, value in given.items():
        need(name in RULES, f"--rules: {name!r} is not allowed. Allowed: {', '.join(RULES)}.")
        need(type(value) in (int, float), f"--rules: {name}: {value!r} is not allowed. Allowed: a number.")
    return given
