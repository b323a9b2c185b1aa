# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import LANGUAGES, locale_language
from probe.reading.dumps.work import Workers

#: the number of rows that are shown unless the user asks for another
ROWS = 40
PATH = "a dump_path, or a step or rank folder in it"


def add_parser(commands: Any, name: str, short: str, long: str, epilog: str = "") -> argparse.ArgumentParser:
    """Add the parser of a command: its line in the list of commands, its description, and a text below the options."""
    return commands.add_parser(name, help=short, description=long, epilog=epilog)  # type: ignore[no-any-return]


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose steps and ranks."""
    parser.add_argument("--step", default="", metavar="STEPS", help="only these steps, as 0,4-6")
    parser.add_argument("--rank", default="", metavar="RANKS", help="only these ranks, as 0-7")


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which processes work."""
    parser.add_argument("--jobs", type=int, default=0, help="how many processes work (default: one for each core)")
    parser.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="a Dask scheduler, as tcp://10.0.0.1:8786: its workers work"
    )


def workers(given: argparse.Namespace) -> Workers:
    """Return the processes that the user asks for."""
    return Workers(max(given.jobs, 0), given.scheduler)


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add the argument that chooses the language of the answer."""
    said = "the language of the answer (default: the locale's)"
    parser.add_argument("--lang", choices=LANGUAGES, default=locale_language(), help=said)


def add_only_summaries(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that write summaries instead of the result."""
    parser.add_argument(
        "--only-summaries", action="store_true", help="write what probe merge puts together, and say nothing else"
    )
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="the file of the summaries (default: standard output)"
    )


def wants_summaries(given: argparse.Namespace) -> bool:
    """Return whether the user asks for summaries.

    Raise UsageError when another output was given that needs the result, or a file for summaries that are not wanted.
    """
    if not given.only_summaries:
        if given.output != "-":
            raise UsageError("-o: this is the file of the summaries; it needs --only-summaries")
        return False
    # compare writes the rows of --csv for each rank; trend prints its --csv from the series of all
    needs_result = {"--json": getattr(given, "json", None), "--xlsx": getattr(given, "xlsx", None)}
    needs_result["--csv"] = getattr(given, "csv", None) is True
    wrong = [option for option, value in needs_result.items() if value]
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: not allowed with --only-summaries. probe merge writes the result.")
    return True


def read_thresholds(path: str | None, rules: Iterable[str]) -> dict[str, float]:
    """Return the thresholds in a JSON file; none without a file.

    Raise UsageError when it cannot be read, or names none of the rules.
    """
    from probe.reading.dumps.document import read_document

    given, allowed = read_document(path) if path else {}, list(rules)
    for name, value in given.items():
        if name not in allowed:
            raise UsageError(f"--rules: {name!r} is not allowed. Allowed: {', '.join(allowed)}.")
        if type(value) not in (int, float):
            raise UsageError(f"--rules: {name}: {value!r} is not allowed. Allowed: a number.")
    return given
