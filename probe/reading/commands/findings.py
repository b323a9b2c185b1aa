# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The commands ``probe nan``, ``ranks`` and ``trend``: findings in one run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.commands import arguments
from probe.reading.commands.watch import series_dict
from probe.reading.dumps import text

if TYPE_CHECKING:
    from probe.reading.compare.origins.origin import Origin
    from probe.reading.dumps.names import Names
    from probe.reading.dumps.samples import Samples
    from probe.reading.one_run.health.step import HealthFinding
    from probe.reading.one_run.nan import Found
    from probe.reading.one_run.rank_checks import RankChecks
    from probe.reading.one_run.rank_digest import Digest
    from probe.reading.one_run.trend import TrendFinding
    from probe.series.dump_rules import Trend


_TREND_HEAD = ("trend.tensor", "trend.rank", "trend.first", "trend.last", "trend.line")
_RANK_KINDS = {
    "parameter": "ranks.kind_parameter", "collective": "ranks.kind_collective", "sequence": "ranks.kind_sequence",
    "data": "ranks.kind_data", "outlier": "ranks.kind_outlier", "statistic": "ranks.kind_statistic",
    "mode": "ranks.kind_mode", "unknown": "ranks.kind_unknown",
}  # fmt: skip


def run_nan(given: argparse.Namespace) -> int:
    """Run ``probe nan``."""
    from probe.reading.dumps.run import open
    from probe.reading.one_run.nan import look_at_all
    from probe.series.skipped import NONFINITE

    if has_rows_alone(given.path):
        return _nan_of_rows(given)
    workers = arguments.workers(given)
    units = look_at_all(open(given.path), workers)
    others = _others(given, lambda item: item.rule in (NONFINITE, "guard"))
    return show_nan(units, given, _nan_in_rows(given.path), others)


def _others(
    given: argparse.Namespace, is_own: Callable[[HealthFinding], bool]
) -> list[HealthFinding]:
    """Return the faults of other readers; none where a program reads the answer."""
    if given.json or getattr(given, "csv", None):
        return []
    from probe.reading.commands.others import faults_of_others

    return faults_of_others(given.path, is_own, arguments.workers(given))


def _nan_in_rows(path: str) -> list[HealthFinding]:
    """Return the first NaN/Inf in rows of the monitor beside dumps."""
    from probe.reading.one_run.health.rows import nonfinite_of
    from probe.series.series import find_series, open_series

    return nonfinite_of(open_series(path)) if find_series(path) else []


def show_nan(
    units: list[Found],
    given: argparse.Namespace,
    rows: Sequence[HealthFinding] = (),
    others: Sequence[HealthFinding] = (),
) -> int:
    """Print the calls that make NaN or Inf in all steps and ranks, and findings of guards; return the exit status.

    ``rows`` has the first NaN/Inf in rows of the monitor, which see steps that no dump has; ``others`` the faults
    that other readers see.
    """
    from probe.reading.commands.others import print_before, print_behind
    from probe.reading.one_run.coverage import looked_at
    from probe.reading.one_run.health.step import guarded, not_known
    from probe.reading.one_run.nan import in_order

    origins = in_order(units)
    guards = [guarded(said, unit.step, unit.rank) for unit in units for said in unit.told]
    guards += [] if origins else rows
    looked = looked_at((unit.step, unit.rank, unit.coverage) for unit in units if not unit.error)
    gaps = list(looked.gaps())
    if not origins and not guards:
        print_before(others, given.lang)
    if given.json:
        print(
            json.dumps(
                [item.to_dict() for item in (*origins, *guards, *map(not_known, gaps))], indent=1
            )
        )
    elif not origins and looked.has_numbers:
        print(say("nan.none", looked=looked.said).text(given.lang))
    for place, origin in enumerate(origins[:5] if not given.json else []):
        call = (
            say("nan.in_cell", name=origin.name, cell=origin.cell) if origin.cell else origin.name
        )
        where = say("list", parts=[*_where(origin), call])
        lines = [say("nan.later" if place else "nan.first", where=where).text(given.lang)]
        lines += [f"    {origin.said.text(given.lang)}"]
        lines += [f"    {origin.file}:{origin.line}: {origin.source}"] if origin.file else []
        lines += (
            [f"    {say('nan.road', names=origin.more).text(given.lang)}"] if origin.more else []
        )
        print(*map(text.safe, lines), sep="\n")
    for item in guards[: arguments.ROWS] if not given.json else []:
        at = _where(item)
        said = say("guard.at", where=say("list", parts=at), said=item.said) if at else item.said
        print(text.safe(said.text(given.lang)))
    if len(guards) > arguments.ROWS and not given.json:
        print(say("trend.more", count=len(guards) - arguments.ROWS).text(given.lang))
    is_unread = _show_errors(units, given.lang) or bool(gaps)
    for gap in gaps if not given.json else []:
        print(text.safe(gap.text(given.lang)))
    if others and (origins or guards):
        print_behind(others, given.path, given.lang)
    for near in [near for unit in units for near in unit.near][:3]:
        print(f"probe: {text.safe(say('nan.close', near=near).text(given.lang))}", file=sys.stderr)
    return 1 if origins or guards else 2 * is_unread


def has_rows_alone(path: str) -> bool:
    """Return whether a folder has rows of the monitor and no dump."""
    from probe.reading.dumps.run import open
    from probe.series.series import find_series

    return bool(find_series(path)) and not open(path).folders


def have_rows_in_common(left: str, right: str) -> bool:
    """Return whether two folders have rows of the monitor, and no step of a dump that both have.

    An alarm records the steps behind it, so each run has a dump of other steps, or one has none.
    """
    from probe.reading.dumps.run import open
    from probe.series.series import find_series

    if not (find_series(left) and find_series(right)):
        return False
    steps = [{folder.step for folder in open(path).folders} for path in (left, right)]
    return steps[0].isdisjoint(steps[1])


def _nan_of_rows(given: argparse.Namespace) -> int:
    """Answer ``probe nan`` about rows of the monitor; return the exit status."""
    from probe.reading.one_run.health.rows import nonfinite_of, said_of
    from probe.series.series import open_series

    ranks = open_series(given.path)
    found = nonfinite_of(ranks)
    if given.json:
        print(json.dumps([item.to_dict() for item in found], indent=1))
    for item in found if not given.json else []:
        print(
            text.safe(
                say("guard.at", where=say("list", parts=_where(item)), said=item.said).text(
                    given.lang
                )
            )
        )
    if not found and not given.json:
        print(text.safe(say("rows.no_nan", looked=said_of(ranks)).text(given.lang)))
    return int(bool(found))


def _where(finding: Origin | HealthFinding) -> list[Sentence]:
    """Return step and rank of a finding, as far as they are known."""
    found = [] if finding.step is None else [say("nan.step", step=finding.step)]
    return found if finding.rank is None else [*found, say("nan.rank", rank=finding.rank)]


def _show_errors(units: Sequence[Found | Digest | Samples], language: str) -> bool:
    """Tell which dumps, or parts of them, could not be read; return whether there is one: it may hold something."""
    errors = [unit.error or unit.lost for unit in units if unit.error or unit.lost]
    for reason in errors:
        print(f"probe: {text.safe(reason.text(language))}", file=sys.stderr)
    return bool(errors)


def run_ranks(given: argparse.Namespace) -> int:
    """Run ``probe ranks``."""
    from probe.reading.dumps.run import open
    from probe.reading.one_run.rank_checks import digest_all

    run = open(given.path)
    if len(run.ranks) < 2:
        raise UsageError(say("error.one_rank", path=given.path))
    digests = digest_all(run, arguments.workers(given))
    return show_ranks(digests, given, _others(given, lambda item: item.rule == "ranks"))


def show_ranks(
    digests: list[Digest], given: argparse.Namespace, others: Sequence[HealthFinding] = ()
) -> int:
    """Print the values on which ranks disagree in all steps; return the exit status.

    ``others`` has the faults that other readers see.
    """
    from probe.reading.commands.others import print_before, print_behind
    from probe.reading.one_run.rank_checks import check_digests

    checks = check_digests(digests)
    found = checks.all
    if not checks.findings:
        print_before(others, given.lang)
    if given.json:
        print(json.dumps([item.to_dict() for item in found], indent=1))
    else:
        for item in found[: arguments.ROWS]:
            step = NOTHING if item.step is None else say("ranks.step", step=item.step)
            kind = say(_RANK_KINDS[item.kind])
            print(
                text.safe(
                    say("ranks.finding", step=step, kind=kind, said=item.said).text(given.lang)
                )
            )
        print(text.safe(_ranks_summary(checks, digests).text(given.lang)))
    if others and checks.findings:
        print_behind(others, given.path, given.lang)
    is_unread = _show_errors(digests, given.lang)
    return checks.status or 2 * is_unread


def _ranks_summary(checks: RankChecks, digests: Sequence[Digest]) -> Sentence:
    """Return the last line: how much was found, and the range that was looked at."""
    if checks.findings:
        return say("ranks.count", count=len(checks.findings), looked=checks.looked)
    is_known = not checks.unknown and not any(item.error or item.lost for item in digests)
    return say("ranks.none" if is_known else "ranks.not_known", looked=checks.looked)


def run_trend(given: argparse.Namespace) -> int:
    """Run ``probe trend``."""
    from probe.reading.dumps.run import open
    from probe.reading.dumps.samples import LIKE, read_all
    from probe.reading.one_run.health.rows import SeriesFinding
    from probe.series.rules import IN_DUMPS, RULES
    from probe.series.series import find_series

    has_series = bool(find_series(given.path))
    thresholds = arguments.read_thresholds(given.rules, RULES if has_series else IN_DUMPS)
    asked = arguments.names(given, LIKE)
    choice = asked, given.stat
    samples = read_all(open(given.path).folders, asked, given.stat, arguments.workers(given))
    others = _others(given, lambda item: isinstance(item, SeriesFinding))
    if not has_series:
        return show_trend(samples, given, choice, thresholds, others=others)
    from probe.reading.one_run.trend import trend_of
    from probe.series.series import open_series

    monitored = trend_of(open_series(given.path), asked, given.stat, thresholds)
    return show_trend(samples, given, choice, thresholds, monitored, others)


def show_trend(
    samples: list[Samples],
    given: argparse.Namespace,
    choice: tuple[Names, str],
    thresholds: dict[str, float],
    monitored: tuple[Trend, list[TrendFinding]] = ({}, []),
    others: Sequence[HealthFinding] = (),
) -> int:
    """Print series; return the exit status.

    ``given`` has the arguments csv, rows and lang; ``choice`` the names, and the statistic; ``monitored``
    series of the monitor, and what the rules say about them; ``others`` the faults that other readers see.
    """
    from probe.reading.commands.others import headline
    from probe.reading.dumps.samples import no_tensor, series
    from probe.reading.dumps.tables import table_file, write_csv
    from probe.reading.one_run.trend import findings, sparkline

    trend, points = series(samples)
    recorded = sorted({sample.step for sample in samples if sample.step is not None})
    found = findings(trend, recorded, thresholds, points) if choice[1].lower() == "norm" else []
    trend = {**trend, **monitored[0]}
    found = [*found, *monitored[1]]
    if not trend:
        raise UsageError(no_tensor(*choice))
    if given.csv:
        rows = (
            (name, rank, *pair)
            for name, ranks in trend.items()
            for rank, steps in ranks.items()
            for pair in steps.items()
        )
        with table_file(given.csv) as file:
            write_csv(file, ("tensor", "rank", "step", choice[1]), rows)
        return 0
    if given.json:
        return _print_trend(trend, found, 1 if found else 2 * _show_errors(samples, given.lang))
    own = [
        say("report.in_series", name=item.name, step=item.step, said=item.said) for item in found
    ]
    if head := headline([*own, *(item.whole for item in others)]):
        print(text.safe(head.text(given.lang)))
    lines = [[say(cell).text(given.lang) for cell in _TREND_HEAD]]
    for name, ranks in trend.items():
        for rank, steps in ranks.items():
            values = list(steps.values())
            ends = [text.number(values[0]), text.number(values[-1])] if values else ["", ""]
            lines.append(
                [text.safe(name), text.number(rank), *ends, f"[{sparkline(values[-60:])}]"]
            )
    shown = lines[: given.rows + 1] if given.rows > 0 else lines
    print(text.columns(shown, text.terminal_width()))
    if len(lines) > len(shown):
        print(f"  {say('trend.more', count=len(lines) - len(shown)).text(given.lang)}")
    for item in found[: arguments.ROWS]:
        look = say("trend.look", step=item.step, name=item.name, said=item.said)
        print(text.safe(look.text(given.lang)))
    is_unread = _show_errors(samples, given.lang)
    return 1 if found else 2 * is_unread


def _print_trend(trend: Trend, found: list[TrendFinding], status: int) -> int:
    pairs = [(name, *pair) for name, ranks in trend.items() for pair in ranks.items()]
    listed = [series_dict(name, rank, steps, steps.values()) for name, rank, steps in pairs]
    print(
        json.dumps(
            {"series": listed, "findings": [item.to_dict() for item in found], "status": status},
            indent=1,
        )
    )
    return status
