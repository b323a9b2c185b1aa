# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``probe merge``: one result of summaries that several machines made."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from probe.errors import UsageError
from probe.reading.commands.arguments import add_language, add_parser, read_thresholds
from probe.reading.commands.findings import add_trend_output, show_nan, show_ranks, show_trend

if TYPE_CHECKING:
    from probe.reading.commands.summary_file import Head


def add_merge(commands: Any) -> None:
    """Add ``probe merge``."""
    parser = add_parser(
        commands,
        "merge",
        "one result of the summaries of several machines",
        "Put the files together that compare, nan, ranks or trend wrote with --only-summaries, on each machine for its "
        "own ranks. Print the result as that command does.",
        "Exit status: that of the command; 2 where files are damaged or do not belong together.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="the files of the summaries")
    parser.add_argument("--json", action="store_true", help="write the result of compare, nan or ranks as JSON")
    add_trend_output(parser)
    add_language(parser)
    parser.set_defaults(run=run_merge, failed=2)


def run_merge(given: argparse.Namespace) -> int:
    """Run ``probe merge``."""
    from probe.reading.commands.summary_file import read_summaries

    head, summaries = read_summaries(given.files)
    show = _SHOW.get(head.command)
    if show is None:
        raise UsageError(f"{given.files[0]}: the command {head.command!r} is not allowed. Allowed: {', '.join(_SHOW)}.")
    if head.command == "ranks" and len({item.rank for item in summaries}) < 2:
        from probe.reading.one_run.rank_checks import ONE_RANK

        raise UsageError(f"{given.files[0]} {ONE_RANK}")
    return show(given, head, summaries)


def _show_comparison(given: argparse.Namespace, head: Head, summaries: list[Any]) -> int:
    from probe.reading.compare.answer.comparison import check_rules
    from probe.reading.compare.answer.result import ComparisonResult
    from probe.reading.compare.answer.summary import summary_text

    check_rules(head.settings.get("rules", []), summaries)
    comparison = ComparisonResult((head.paths[0], head.paths[1]), summaries, (list(head.alone[0]), list(head.alone[1])))
    print(json.dumps(comparison.to_dict(), indent=1) if given.json else summary_text(comparison, given.lang))
    return comparison.status


def _show_nan(given: argparse.Namespace, head: Head, summaries: list[Any]) -> int:
    return show_nan(summaries, given.json, given.lang)


def _show_ranks(given: argparse.Namespace, head: Head, summaries: list[Any]) -> int:
    return show_ranks(summaries, given.json, given.lang)


def _show_trend(given: argparse.Namespace, head: Head, summaries: list[Any]) -> int:
    from probe.series.table import IN_DUMPS

    choice = str(head.settings.get("like")), str(head.settings.get("stat"))
    return show_trend(summaries, given, choice, read_thresholds(given.rules, IN_DUMPS))


_SHOW: dict[str, Callable[[argparse.Namespace, Any, list[Any]], int]] = {
    "compare": _show_comparison, "nan": _show_nan, "ranks": _show_ranks, "trend": _show_trend,
}  # fmt: skip
