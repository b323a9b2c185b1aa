# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands ``probe show``, ``compare``, ``check``, ``report`` and ``recover``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from functools import partial
from typing import TYPE_CHECKING, Any

from probe.door import open_text
from probe.errors import UsageError
from probe.findings.sentence import locale_language, say
from probe.findings.system import foreign, reason_of
from probe.reading.commands import arguments
from probe.reading.commands.findings import has_rows_alone, have_rows_in_common
from probe.reading.commands.rows import compare_rows_alone
from probe.reading.dumps import text
from probe.reading.dumps.tables import create, table_file

if TYPE_CHECKING:
    from probe.reading.report.report import Outcome, Wishes


def run_compare(given: argparse.Namespace) -> int:
    """Run ``probe compare``."""
    golden = given.a or given.golden_path
    target = given.b or given.target_path
    if given.a and not given.b and given.golden_path:
        golden = given.golden_path
        target = given.a
    if not golden or not target:
        raise UsageError(say("error.two_dumps"))
    if not given.tolerance >= 0:
        raise UsageError(say("error.tolerance", value=given.tolerance))
    is_table = given.csv == "-"
    if is_table and given.json == "-":
        raise UsageError(say("error.two_outputs"))
    if is_table and given.scheduler:
        raise UsageError(say("error.csv_cluster"))
    if have_rows_in_common(golden, target):
        return compare_rows_alone(given, golden, target)
    scratch = tempfile.mkdtemp(prefix="probe-rows-") if is_table else ""
    try:
        return _compare(
            given, golden, target, os.path.join(scratch, "rows.csv") if is_table else given.csv
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _compare(given: argparse.Namespace, golden: str, target: str, csv: str | None) -> int:
    """Compare two dumps, and write the answer; ``csv`` is the file that gets the rows."""
    from probe.reading.compare.answer.comparison import Request, check_rules, compare_runs, to_xlsx
    from probe.reading.compare.answer.summary import summary_text
    from probe.reading.compare.judging.judged_pairs import Options

    rows = {"csv": csv, "jsonl": given.jsonl, "msprobe": given.msprobe_csv}
    rows = {form: path for form, path in rows.items() if path}
    mapping = read_map(given.map) if given.map else {}
    options = Options(
        mapping,
        tuple(map(tuple, given.rule)),
        factor=given.tolerance,
        arrays=given.arrays,
        layouts=(given.layout_a, given.layout_b),
        distance=given.distance,
    )
    request = Request(options, given.noise, given.step, given.rank, arguments.workers(given), rows)
    comparison = compare_runs(golden, target, request)
    check_rules(options.rules, comparison.units)
    if given.json == "-":
        print(json.dumps(comparison.to_dict(), indent=1))
    elif given.csv == "-":
        with open_text(str(csv), newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    else:
        print(summary_text(comparison, given.lang))
    if given.json and given.json != "-":
        with create(given.json) as file:
            json.dump(comparison.to_dict(), file, indent=1)
    if given.xlsx:
        to_xlsx(comparison, given.xlsx)
    for path in (given.csv, given.jsonl, given.msprobe_csv, given.json, given.xlsx):
        if path and path != "-":
            print(say("replay.written", path=path).text(given.lang), file=sys.stderr)
    return comparison.status


def read_map(path: str) -> dict[str, str]:
    """Return the names in a map file, flat or in sections as msprobe has them; raise UsageError when it has none."""
    import yaml

    try:
        with open_text(path) as file:
            content = yaml.safe_load(file)
    except RecursionError:
        raise UsageError(say("error.map_deep", path=path)) from None
    except OSError as error:
        raise UsageError(say("error.map", path=path, reason=reason_of(error))) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(
            say("error.map", path=path, reason=foreign(" ".join(str(error).split())))
        ) from error
    found: dict[str, str] = {}
    _collect(content, found)
    if not found:
        raise UsageError(say("error.map_empty", path=path))
    return found


def _collect(content: Any, found: dict[str, str]) -> None:
    if isinstance(content, dict):
        for key, value in content.items():
            if isinstance(value, str):
                found[str(key)] = value
            else:
                _collect(value, found)


def run_show(given: argparse.Namespace) -> int:
    """Run ``probe show``."""
    from probe.reading.dumps.dtypes import answer_fits
    from probe.reading.dumps.query import Query, answer_to, overview
    from probe.reading.dumps.run import open

    if given.csv:
        given.format = "csv"
    if given.dtypes and given.format == "csv":
        raise UsageError(say("error.csv_dtypes"))
    width = text.terminal_width()
    default = arguments.ROWS if width and given.format == "text" else 0
    query = Query(
        arguments.names(given),
        given.step,
        given.rank,
        given.nonfinite,
        given.raised,
        given.sort,
        default if given.rows < 0 else given.rows,
        given.stack,
    )
    run = open(given.path)
    if not run.folders and has_rows_alone(given.path):
        return _show_rows(given)
    if given.dtypes:
        from probe.reading.dumps.dtypes import show_dtypes

        return show_dtypes(run, query, given.format, width, given.lang)
    if query.is_empty and given.format == "text" and not given.fits:
        described, broken = overview(
            run, 16 if given.rows < 0 else given.rows or sys.maxsize, width, given.lang
        )
        print(described)
        return int(broken > 0)
    answer = partial(answer_fits, name=given.fits) if given.fits else answer_to
    with table_file(given.csv or "-") as file:
        notes, broken = answer(
            run, query, form=given.format, width=width, language=given.lang, file=file
        )
    for note in notes:
        print(f"probe: {text.safe(note.text(given.lang))}", file=sys.stderr)
    return int(broken > 0)


def _show_rows(given: argparse.Namespace) -> int:
    """Answer ``probe show`` about rows of the monitor, as ``probe watch`` shows them; return the exit status."""
    from probe.reading.commands.watch import show_rows
    from probe.series.series import open_series

    if given.format != "text":
        raise UsageError(say("error.rows_alone", path=given.path))
    for rank in open_series(given.path):
        show_rows(
            rank,
            [],
            given.lang,
            asked=arguments.names(given),
            rows=arguments.ROWS if given.rows < 0 else given.rows,
        )
    return 0


def run_recover(given: argparse.Namespace) -> int:
    """Run ``probe recover``."""
    from probe.reading.dumps.journal_reader import recover

    outcomes = recover(given.path, given.lang)
    if given.json:
        print(json.dumps([outcome.to_dict() for outcome in outcomes], indent=1))
    for outcome in outcomes if not given.json else ():
        print(
            text.safe(outcome.said.text(given.lang)),
            file=sys.stdout if outcome.well else sys.stderr,
        )
    return int(not all(outcome.well for outcome in outcomes))


def run_report(given: argparse.Namespace) -> int:
    """Run ``probe report``."""
    from probe.reading.compare.answer.comparison import Request
    from probe.reading.compare.judging.judged_pairs import Options
    from probe.reading.report.report import Wishes, make_report

    if len(given.paths) > 2:
        raise UsageError(say("error.report_paths"))
    if not given.tolerance >= 0:
        raise UsageError(say("error.tolerance", value=given.tolerance))
    request = Request(
        Options(factor=given.tolerance),
        step=given.step,
        rank=given.rank,
        workers=arguments.workers(given),
    )
    wishes = Wishes(request, not given.no_code, given.all, given.lang)
    if given.follow:
        return _follow(given, wishes)
    golden = given.paths[0] if len(given.paths) == 2 else ""
    done = make_report(given.output, given.paths[-1], golden, wishes)
    if given.json:
        print(
            json.dumps(
                {
                    "page": given.output,
                    **done._asdict(),
                    "unread": [str(reason) for reason in done.unread],
                    "headline": str(done.headline),
                },
                indent=1,
            )
        )
        return done.status
    _tell_page(done, given)
    return done.status


def _follow(given: argparse.Namespace, wishes: Wishes) -> int:
    """Renew the page until the user interrupts; print each new headline; return the exit status of the last page."""
    from probe.reading.report.following import follow

    if len(given.paths) > 1:
        raise UsageError(say("error.report_follow"))
    told: list[str] = []

    def tell(done: Outcome) -> None:
        if str(done.headline) not in told[-1:]:
            told.append(str(done.headline))
            _tell_page(done, given)
            sys.stdout.flush()

    return follow(given.output, given.paths[0], wishes, tell).status


def _tell_page(done: Outcome, given: argparse.Namespace) -> None:
    """Print the headline of a page, its size, and what is not in it."""
    from probe.reading.report.report import LARGE

    language = given.lang or locale_language()
    facts = {"page": given.output, "size": text.size(done.size), "calls": done.calls}
    print(text.safe(done.headline.text(language)))
    print(
        text.safe(
            say("report.page" if done.calls else "report.page_of_rows", **facts).text(language)
        )
    )
    remarks = [text.safe(reason.text(language)) for reason in done.unread]
    remarks += [say("report.left_out", count=done.dropped).text(language)] if done.dropped else []
    remarks += [say("report.large", size=facts["size"]).text(language)] if done.size > LARGE else []
    for remark in remarks:
        print(f"probe: {remark}", file=sys.stderr)


def run_check(given: argparse.Namespace) -> int:
    """Run ``probe check``."""
    from probe.reading.check.check import check
    from probe.reading.check.weights.kinds import is_checkpoint
    from probe.reading.check.weights.sources import describe_weights
    from probe.reading.one_run.health.run_check import check_run

    if len(given.paths) > 2:
        raise UsageError(say("error.check_paths"))
    if len(given.paths) == 2:
        result = check(*given.paths)
        print(json.dumps(result.to_dict(), indent=1) if given.json else result.text(given.lang))
        return result.status
    if is_checkpoint(given.paths[0]):
        print(describe_weights(given.paths[0], given.json, given.lang))
        return 0
    if has_rows_alone(given.paths[0]):
        return _check_rows(given)
    alone = check_run(given.paths[0], arguments.workers(given))
    print(
        json.dumps(alone.to_dict(), indent=1) if given.json else alone.text(given.lang, given.rows)
    )
    return 1 if not alone.ok else 2 * (not alone.is_known)


def _check_rows(given: argparse.Namespace) -> int:
    """Answer ``probe check`` about rows of the monitor; return the exit status."""
    from probe.reading.one_run.health.rows import alarms_of, gaps_of, said_of, skips_of
    from probe.reading.one_run.health.step import not_known
    from probe.series.series import open_series

    ranks = open_series(given.paths[0])
    found = alarms_of(ranks)
    skips = skips_of(ranks)
    gaps = gaps_of(ranks)
    status = 1 if found else 2 * bool(gaps)
    if given.json:
        listed = [item.to_dict() for item in (*found, *skips)]
        unknown = [not_known(gap).to_dict() for gap in gaps]
        told = {"ok": not found, "findings": listed, "errors": [], "unknown": unknown, "runs": []}
        print(json.dumps(told, indent=1))
        return status
    for item in found[: given.rows] if given.rows > 0 else found:
        print(text.safe(item.whole.text(given.lang)))
    if len(found) > given.rows > 0:
        print(say("health.rest", count=len(found) - given.rows).text(given.lang))
    if not found:
        print(text.safe(say("rows.no_alarm", looked=said_of(ranks)).text(given.lang)))
    for note in skips:
        print(text.safe(note.whole.text(given.lang)))
    for gap in gaps:
        print(text.safe(gap.text(given.lang)))
    return status
