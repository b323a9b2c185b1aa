# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The commands that read dumps: what each is given, and what it prints."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from probe.errors import UsageError
from probe.reading import text

_PATH = "a dump_path, or a step or rank folder in it"


def add_commands(commands: Any) -> None:
    """Add the commands to the parser of the command line."""
    from probe.reading.compare.command import add_command

    _add_show(commands)
    add_command(commands)
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
    from probe.reading.query import ROWS, Query, answer_to
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
