# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands ``probe show``, ``probe check``, ``probe report`` and ``probe recover``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from probe.errors import UsageError
from probe.reading.commands.arguments import PATH, ROWS, add_choice, add_language, add_parser, add_workers, workers
from probe.reading.dumps import text


def add_show(commands: Any) -> None:
    """Add ``probe show``."""
    show = add_parser(
        commands,
        "show",
        "the content of a dump",
        "Show the content of a dump; with a question, the tensors that fit.",
        "Exit status: 0, 1 when a dump is broken or there is none, 2 for wrong arguments.",
    )
    show.add_argument("path", help=PATH)
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
    add_language(show)
    show.set_defaults(run=run_show)


def run_show(given: argparse.Namespace) -> int:
    """Run ``probe show``."""
    from probe.reading.dumps.query import Query, answer_to
    from probe.reading.dumps.run import open
    from probe.reading.dumps.show import overview

    width = text.terminal_width()
    default = ROWS if width and given.format == "text" else 0
    query = Query(
        given.name, given.regex, given.cell, given.step, given.rank, given.nonfinite, given.raised, given.sort,
        default if given.rows < 0 else given.rows, given.stack,
    )  # fmt: skip
    run = open(given.path)
    if query.is_empty and given.format == "text":
        described, broken = overview(run, 16 if given.rows < 0 else given.rows or sys.maxsize, width, given.lang)
        print(described)
        return int(broken > 0)
    notes, broken = answer_to(run, query, given.format, width, given.lang)
    for note in notes:
        print(f"probe: {text.safe(note.text(given.lang))}", file=sys.stderr)
    return int(broken > 0)


def add_recover(commands: Any) -> None:
    """Add ``probe recover``."""
    recover = add_parser(
        commands,
        "recover",
        "write the documents that a dead process could not",
        "Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
    )
    recover.add_argument("path", help=PATH)
    recover.set_defaults(run=run_recover)


def run_recover(given: argparse.Namespace) -> int:
    """Run ``probe recover``."""
    from probe.reading.dumps.journal_reader import recover

    outcomes = recover(given.path)
    for outcome in outcomes:
        print(outcome.text, file=sys.stdout if outcome.well else sys.stderr)
    return int(not all(outcome.well for outcome in outcomes))


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


def add_check(commands: Any) -> None:
    """Add ``probe check``."""
    parser = add_parser(
        commands,
        "check",
        "what is wrong in one run? are two runs, or two checkpoints, the same experiment?",
        "Look at one run alone: untrained parameters, modes, losses, numbers. Or compare parameters, batches, "
        "Cells, optimizers, seeds, versions and the command of two runs, or the weights of two checkpoints.",
        "Exit status: 0 no fault, or the same; 1 a fault, or differences; 2 wrong use, or a file that cannot be read.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH",
        help="[GOLDEN] TARGET: a dump_path, a run.json, or a checkpoint (.ckpt, .safetensors, .npz, .pt, .bin)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="write the result as JSON")
    parser.add_argument("--rows", type=int, default=12, help="how many findings of one run to list (0: all)")
    add_workers(parser)
    add_language(parser)
    parser.set_defaults(run=run_check, failed=2)


def run_check(given: argparse.Namespace) -> int:
    """Run ``probe check``."""
    from probe.reading.check.check import check
    from probe.reading.check.weights.check import describe_weights
    from probe.reading.check.weights.kinds import is_checkpoint
    from probe.reading.one_run.health.run_check import check_run

    if len(given.paths) > 2:
        raise UsageError("check takes one run or two: probe check [GOLDEN] TARGET")
    if len(given.paths) == 2:
        result = check(*given.paths)
        print(json.dumps(result.to_dict(), indent=1) if given.json else result.text(given.lang))
        return int(bool(result.differences))
    if is_checkpoint(given.paths[0]):
        print(describe_weights(given.paths[0], given.json, given.lang))
        return 0
    alone = check_run(given.paths[0], workers(given))
    print(json.dumps(alone.to_dict(), indent=1) if given.json else alone.text(given.lang, given.rows))
    return 1 if not alone.ok else 2 * bool(alone.errors)
