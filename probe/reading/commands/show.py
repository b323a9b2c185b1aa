# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands ``probe show``, ``compare``, ``check``, ``report`` and ``recover``."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from probe.door import open_text
from probe.errors import UsageError
from probe.naming import NARROWER
from probe.reading.commands import arguments
from probe.reading.dumps import text
from probe.reading.dumps.tables import create

if TYPE_CHECKING:
    from probe.reading.commands.summary_file import Head
    from probe.reading.compare.answer.summary import ComparisonResult
    from probe.reading.compare.judging.judged_pairs import Options


def add_compare(commands: Any) -> None:
    """Add ``probe compare``."""
    parser = arguments.add_parser(
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
    arguments.add_choice(parser)
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
    parser.add_argument("--distance", default="", metavar="MODULE:FUNCTION",
                        help="your own distance of two arrays; a rule may name it, as 'distance <= 0.1'")  # fmt: skip
    parser.add_argument("--map", metavar="FILE", help="yaml or JSON with names in GOLDEN: names in TARGET")
    parser.add_argument("--arrays", default="all", choices=("all", "differs", "none"), help="which arrays are read")
    arguments.add_workers(parser)
    arguments.add_language(parser)
    arguments.add_only_summaries(parser)
    parser.add_argument("--csv", metavar="FILE", help="write a row for each tensor")
    parser.add_argument("--jsonl", metavar="FILE", help="write a line of JSON for each tensor")
    said = "write the summary with the origins as JSON (default: to stdout)"
    parser.add_argument("--json", nargs="?", const="-", metavar="FILE", help=said)
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
        layouts=(given.layout_a, given.layout_b), distance=given.distance,
    )  # fmt: skip
    only_summaries = arguments.wants_summaries(given)
    request = Request(options, given.noise, given.step, given.rank, arguments.workers(given), rows)
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
        "map": options.mapping, "layouts": list(options.layouts), "distance": options.distance,
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


def add_show(commands: Any) -> None:
    """Add ``probe show``."""
    show = arguments.add_parser(
        commands,
        "show",
        "the content of a dump",
        "Show the content of a dump; with a question, the tensors that fit.",
        "Exit status: 0, 1 when a dump is broken or there is none, 2 for wrong arguments.",
    )
    show.add_argument("path", help=arguments.PATH)
    show.add_argument("--name", default="", metavar="TEXT", help="tensors whose name contains this")
    show.add_argument("--regex", default="", help="tensors in whose name this regular expression is found")
    show.add_argument("--cell", default="", metavar="PATH", help="calls in Cells whose path contains this")
    arguments.add_choice(show)
    show.add_argument("--nonfinite", action="store_true", help="tensors that hold NaN or Inf")
    show.add_argument("--raised", action="store_true", help="calls that raised")
    show.add_argument(
        "--sort", default="", metavar="KEY", help="greatest first: max, min, mean, norm, nan_count, inf_count"
    )
    show.add_argument(
        "--fits", default="", metavar="DTYPE", choices=NARROWER,
        help=f"calls whose numbers would become Inf or zero in {', '.join(NARROWER)}; worst first",
    )  # fmt: skip
    show.add_argument("--dtypes", action="store_true", help="calls and casts by dtype; where half enters and leaves")
    show.add_argument("--stack", action="store_true", help="with the lines of code that each call came from")
    show.add_argument("--rows", type=int, default=-1, help="how many tensors to list (0: all)")
    show.add_argument("--format", choices=("text", "csv", "json"), default="text", help="how they are written")
    show.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    arguments.add_language(show)
    show.set_defaults(run=run_show)


def run_show(given: argparse.Namespace) -> int:
    """Run ``probe show``."""
    from probe.reading.dumps.fits import answer_fits
    from probe.reading.dumps.query import Query, answer_to, overview
    from probe.reading.dumps.run import open

    width = text.terminal_width()
    default = arguments.ROWS if width and given.format == "text" else 0
    query = Query(
        given.name, given.regex, given.cell, given.step, given.rank, given.nonfinite, given.raised, given.sort,
        default if given.rows < 0 else given.rows, given.stack,
    )  # fmt: skip
    run = open(given.path)
    if given.dtypes:
        from probe.reading.dumps.dtypes import show_dtypes

        return show_dtypes(run, query, given.format, width, given.lang)
    if query.is_empty and given.format == "text" and not given.fits:
        described, broken = overview(run, 16 if given.rows < 0 else given.rows or sys.maxsize, width, given.lang)
        print(described)
        return int(broken > 0)
    answer = partial(answer_fits, name=given.fits) if given.fits else answer_to
    notes, broken = answer(run, query, form=given.format, width=width, language=given.lang)
    for note in notes:
        print(f"probe: {text.safe(note.text(given.lang))}", file=sys.stderr)
    return int(broken > 0)


def add_recover(commands: Any) -> None:
    """Add ``probe recover``."""
    recover = arguments.add_parser(
        commands,
        "recover",
        "write the documents that a dead process could not",
        "Turn the journals that a dead process left into dump.json, stack.json and construct.json.",
    )
    recover.add_argument("path", help=arguments.PATH)
    recover.add_argument("--json", action="store_true", help="write the result as JSON")
    recover.set_defaults(run=run_recover)


def run_recover(given: argparse.Namespace) -> int:
    """Run ``probe recover``."""
    from probe.reading.dumps.journal_reader import recover

    outcomes = recover(given.path)
    if given.json:
        print(json.dumps([outcome._asdict() for outcome in outcomes], indent=1))
    for outcome in outcomes if not given.json else ():
        print(outcome.text, file=sys.stdout if outcome.well else sys.stderr)
    return int(not all(outcome.well for outcome in outcomes))


def add_report(commands: Any) -> None:
    """Add ``probe report``."""
    parser = arguments.add_parser(
        commands,
        "report",
        "one page to look at, of one run or of two",
        "Write one HTML file that opens in a browser without server and network. With two runs it shows where they "
        "begin to differ; A is the golden one, B is yours. With one run it shows NaN/Inf, norms and ranks.",
        "Exit status: 0 nothing found, 1 differences or NaN/Inf, 2 wrong use or nothing to show.",
    )
    parser.add_argument("paths", nargs="+", metavar="DIR", help=f"[GOLDEN] DIR: {arguments.PATH}")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (report.html)")
    arguments.add_choice(parser)
    parser.add_argument("--no-code", action="store_true", help="leave out source lines and the folders of files")
    parser.add_argument("--all", action="store_true", help="keep every row, above 300,000 too")
    parser.add_argument("--lang", choices=("en", "zh"), default="", help="the language (default: the browser's)")
    parser.add_argument("--tolerance", type=float, default=1.0, metavar="FACTOR", help="multiplies all tolerances")
    parser.add_argument("--json", action="store_true", help="say in JSON what was written")
    arguments.add_workers(parser)
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
    request = Request(
        Options(factor=given.tolerance), step=given.step, rank=given.rank, workers=arguments.workers(given)
    )
    wishes = Wishes(request, not given.no_code, given.all, given.lang)
    golden = given.paths[0] if len(given.paths) == 2 else ""
    done = make_report(given.output, given.paths[-1], golden, wishes)
    if given.json:
        print(json.dumps({"page": given.output, **done._asdict()}, indent=1))
        return done.status
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
    parser = arguments.add_parser(
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
    arguments.add_workers(parser)
    arguments.add_language(parser)
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
    alone = check_run(given.paths[0], arguments.workers(given))
    print(json.dumps(alone.to_dict(), indent=1) if given.json else alone.text(given.lang, given.rows))
    return 1 if not alone.ok else 2 * bool(alone.errors)
