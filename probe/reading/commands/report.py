# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe report``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from probe.errors import UsageError
from probe.reading.commands.arguments import PATH, add_choice, add_parser, add_workers, workers
from probe.reading.dumps import text


def add_report(commands: Any) -> None:
    """Add ``probe report``."""
    parser = add_parser(
        commands,
        "report",
        "one page to look at, of one run or of two",
        "Write one HTML file that opens in a browser without server and network. With two runs it shows where they "
        "begin to differ; A is the golden one, B is yours. With one run it shows NaN/Inf, norms and ranks.",
        "Exit status: 0 nothing found, 1 differences or NaN/Inf, 2 wrong use or nothing to show.",
    )
    parser.add_argument("paths", nargs="+", metavar="DIR", help=f"[GOLDEN] DIR: {PATH}")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (report.html)")
    add_choice(parser)
    parser.add_argument("--no-code", action="store_true", help="leave out source lines and the folders of files")
    parser.add_argument("--all", action="store_true", help="keep every row, above 300,000 too")
    parser.add_argument("--lang", choices=("en", "zh"), default="", help="the language (default: the browser's)")
    parser.add_argument("--tolerance", type=float, default=1.0, metavar="FACTOR", help="multiplies all tolerances")
    add_workers(parser)
    parser.set_defaults(run=run_report, failed=2)


def run_report(given: argparse.Namespace) -> int:
    """Run ``probe report``."""
    from probe.reading.compare.answer.comparison import Request
    from probe.reading.compare.judging.judged_pairs import Options
    from probe.reading.report.report import LARGE, Wishes, make_report

    if len(given.paths) > 2:
        raise UsageError("report takes one dump or two: probe report [GOLDEN] DIR")
    if not given.tolerance >= 0:
        raise UsageError(f"--tolerance: {given.tolerance} is not allowed. Allowed: a number from 0.")
    request = Request(Options(factor=given.tolerance), step=given.step, rank=given.rank, workers=workers(given))
    wishes = Wishes(request, not given.no_code, given.all, given.lang)
    golden = given.paths[0] if len(given.paths) == 2 else ""
    done = make_report(given.output, given.paths[-1], golden, wishes)
    print(f"{given.output}: {done.calls} calls, {text.size(done.size)}")
    for line in done.unread:
        print(f"probe: {text.safe(line)}", file=sys.stderr)
    if done.dropped:
        print(
            f"probe: {done.dropped} calls that agree are left out; another rank or step stands for each. "
            "Keep them with --all",
            file=sys.stderr,
        )
    if done.size > LARGE:
        print(
            f"probe: the page has {text.size(done.size)}: browsers take seconds to open it, and mails may refuse it. "
            "Choose steps or ranks with --step and --rank",
            file=sys.stderr,
        )
    return done.status
