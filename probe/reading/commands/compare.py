# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The command ``probe compare``."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from probe.door import open_text
from probe.errors import UsageError
from probe.reading.commands.arguments import (
    add_choice,
    add_language,
    add_only_summaries,
    add_parser,
    add_workers,
    wants_summaries,
    workers,
)
from probe.reading.dumps.outputs import create

if TYPE_CHECKING:
    from probe.reading.commands.summary_file import Head
    from probe.reading.compare.answer.result import ComparisonResult
    from probe.reading.compare.judging.judged_pairs import Options


def add_compare(commands: Any) -> None:
    """Add ``probe compare``."""
    parser = add_parser(
        commands,
        "compare",
        "where two runs begin to differ",
        "Compare two runs, steps, ranks or dump.json files, and name where their differences begin. "
        "A is the golden one, B is yours.",
        "Exit status: 0 no difference beyond tolerance, 1 differences, 2 wrong use or nothing to compare.",
    )
    parser.add_argument("a", nargs="?", metavar="GOLDEN", help="A: a dump_path, or a step or rank folder in it")
    parser.add_argument("b", nargs="?", metavar="TARGET", help="B, likewise")
    parser.add_argument("-gp", "--golden_path", metavar="GOLDEN", help="the same as GOLDEN")
    parser.add_argument("-tp", "--target_path", metavar="TARGET", help="the same as TARGET")
    add_choice(parser)
    for side, run in (("a", "GOLDEN"), ("b", "TARGET")):
        parser.add_argument(
            f"--layout-{side}", default="", metavar="LAYOUT",
            help=f"the parallel layout of {run}, as tp=8,pp=2: keys tp, pp, dp, vpp, order (default: its header's)",
        )  # fmt: skip
    parser.add_argument("--rule", nargs=2, action="append", default=[], metavar=("REGEX", "CONDITION"),
                        help="the condition for tensors with such a name, as softmax 'rel_l2 <= 0.02'")  # fmt: skip
    parser.add_argument(
        "--noise", metavar="GOLDEN2", help="a second golden run: three times their difference is allowed; one of "
        "probe run --perturb: the noise of the net is the tolerance"
    )  # fmt: skip
    parser.add_argument("--tolerance", type=float, default=1.0, metavar="FACTOR", help="multiplies all tolerances")
    parser.add_argument("--map", metavar="FILE", help="yaml or JSON with names in GOLDEN: names in TARGET")
    parser.add_argument("--arrays", default="all", choices=("all", "differs", "none"), help="which arrays are read")
    add_workers(parser)
    add_language(parser)
    add_only_summaries(parser)
    parser.add_argument("--csv", metavar="FILE", help="write a row for each tensor")
    parser.add_argument("--jsonl", metavar="FILE", help="write a line of JSON for each tensor")
    parser.add_argument("--json", metavar="FILE", help="write the summary with the origins as JSON (- for stdout)")
    parser.add_argument("--xlsx", metavar="FILE", help="write a workbook (needs XlsxWriter)")
    parser.add_argument("--msprobe-csv", metavar="FILE", help="write a table with the columns of msprobe")
    parser.set_defaults(run=run_compare, failed=2)


def run_compare(given: argparse.Namespace) -> int:
    """Run ``probe compare``."""
    from probe.reading.commands.summary_file import write_summaries
    from probe.reading.compare.answer.comparison import Request, check_rules, compare_runs, to_xlsx
    from probe.reading.compare.answer.summary import summary_text
    from probe.reading.compare.judging.judged_pairs import Options

    golden, target = given.a or given.golden_path, given.b or given.target_path
    if given.a and not given.b and given.golden_path:
        golden, target = given.golden_path, given.a
    if not golden or not target:
        raise UsageError("compare needs two dumps: probe compare GOLDEN TARGET")
    if not given.tolerance >= 0:
        raise UsageError(f"--tolerance: {given.tolerance} is not allowed. Allowed: a number from 0.")
    rows = {"csv": given.csv, "jsonl": given.jsonl, "msprobe": given.msprobe_csv}
    rows = {form: path for form, path in rows.items() if path}
    mapping = read_map(given.map) if given.map else {}
    options = Options(
        mapping, tuple(map(tuple, given.rule)), factor=given.tolerance, arrays=given.arrays,
        layouts=(given.layout_a, given.layout_b),
    )  # fmt: skip
    only_summaries = wants_summaries(given)
    request = Request(options, given.noise, given.step, given.rank, workers(given), rows)
    comparison = compare_runs(golden, target, request)
    if only_summaries:
        write_summaries(given.output, _head(comparison, options), comparison.units)
        return 0
    check_rules(options.rules, comparison.units)
    if given.json == "-":
        print(json.dumps(comparison.to_dict(), indent=1))
    else:
        print(summary_text(comparison, given.lang))
    if given.json and given.json != "-":
        with create(given.json) as file:
            json.dump(comparison.to_dict(), file, indent=1)
    if given.xlsx:
        to_xlsx(comparison, given.xlsx)
    for path in filter(None, (*rows.values(), given.json if given.json != "-" else None, given.xlsx)):
        print(f"written: {path}", file=sys.stderr)
    return comparison.status


def _head(comparison: ComparisonResult, options: Options) -> Head:
    """Return the head of a file with the summaries of a comparison."""
    from probe.reading.commands.summary_file import Head, encode

    settings = {
        "rules": [list(rule) for rule in options.rules], "tolerance": options.factor, "arrays": options.arrays,
        "map": options.mapping, "layouts": list(options.layouts),
    }  # fmt: skip
    return Head("compare", settings, list(comparison.paths), [encode(labels) for labels in comparison.alone])


def read_map(path: str) -> dict[str, str]:
    """Return the names that a map file holds: flat, or in sections as msprobe's mapping files have them.

    Raise UsageError when it cannot be read, or holds no names.
    """
    import yaml

    try:
        with open_text(path) as file:
            content = yaml.safe_load(file)
    except RecursionError:
        raise UsageError(f"--map: {path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"--map: {path} cannot be read: {' '.join(str(error).split())}") from error
    found: dict[str, str] = {}
    _collect(content, found)
    if not found:
        raise UsageError(f"--map: {path} holds no names. Allowed: lines as blocks.0.down: blocks.0.fc2")
    return found


def _collect(content: Any, found: dict[str, str]) -> None:
    if isinstance(content, dict):
        for key, value in content.items():
            if isinstance(value, str):
                found[str(key)] = value
            else:
                _collect(value, found)
