# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes a report: reads the dumps in as many processes as there are cores, and writes the page.

One step of one rank is one part of it, of one run alone or of two.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.reading.check.snapshot import Snapshots
from probe.reading.compare.answer.comparison import Request, pair_folders
from probe.reading.compare.origins.across_steps import link_steps
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.tables import create_whole
from probe.reading.dumps.work import Workers, run_units
from probe.reading.one_run.coverage import looked_at
from probe.reading.one_run.health.rows import Rows, gaps_of as gaps_of_rows, read_rows, said_of
from probe.reading.one_run.health.run_look import findings_of, gaps_of, skipped_of, trends_of
from probe.reading.report.content import Content, ContentMaker
from probe.reading.report.headline import OneRun
from probe.reading.report.html_page import write
from probe.reading.report.part import Part
from probe.reading.report.reading import pair_part, run_part
from probe.reading.report.row_pairs import compare_rows
from probe.reading.report.sources import Sources
from probe.reading.report.told_search import ToldSearch
from probe.series.file import RankSeries

#: above this size a page is slow to open, and mails refuse it
LARGE = 30_000_000
#: the gap of a net that no optimizer holds
_UNTOLD = "gap.outside"


class Wishes(NamedTuple):
    """The wishes of the user for a report."""

    #: which steps and ranks, the processes that work, and the settings of the comparison
    request: Request = Request()
    with_code: bool = True  # whether source lines and folders of the code are kept
    everything: bool = False  # whether all rows are kept, however many there are
    language: str = ""  # "en", "zh", or "" for that of the browser
    search: ToldSearch | None = None  # the search that led to these runs
    watched: Sequence[RankSeries] = ()  # rows of the monitor of the same training, from another run


class Outcome(NamedTuple):
    """The outcome of a report."""

    status: int  # 0 nothing found, 1 something found, 2 not comparable
    size: int  # the size of the page in bytes
    calls: int  # how many calls it tells about
    dropped: int  # how many of them others stand for
    unread: Sequence[Sentence] = ()  # why dumps could not be read
    headline: Sentence = NOTHING  # the heaviest finding, or what was looked at


def report(
    a: str | os.PathLike[str] | Run,
    b: str | os.PathLike[str] | Run | None = None,
    path: str | os.PathLike[str] = "report.html",
    step: str = "",
    rank: str = "",
    jobs: int = 1,
    scheduler: str = "",
    lang: str = "",
) -> Outcome:
    """Write one HTML page about one run, or about two and where they begin to differ.

    Args:
        a: the run; with ``b`` it is A, the golden one.
        b: B, yours.
        path: the page.
        step: which steps, as "0,4-6".
        rank: which ranks, likewise.
        jobs: how many processes work; more than 1 only from a script with ``if __name__ == "__main__"``.
        scheduler: the address of a Dask scheduler, whose workers do it instead.
        lang: "en" or "zh"; "" for the language of the browser.

    Raises:
        UsageError: when there is no dump, nothing can be compared, or the page cannot be written.

    Example::

        outcome = probe.report("golden", "mine", path="report.html")
        print(outcome.status, outcome.calls)
    """
    path_a = _path_of(a)
    path_b = None if b is None else _path_of(b)
    if lang not in ("", "en", "zh"):
        raise UsageError(f'lang: {lang!r} is not "en", "zh" or ""')
    request = Request(step=step, rank=rank, workers=Workers(jobs, scheduler))
    wishes = Wishes(request, language=lang)
    if path_b is None:
        return make_report(path, path_a, "", wishes)
    return make_report(path, path_b, path_a, wishes)


def _path_of(run: str | os.PathLike[str] | Run) -> str:
    return run.path if isinstance(run, Run) else os.fspath(run)


def make_content(path: str, golden: str = "", wishes: Wishes | None = None) -> Content:
    """Return the content of the report of one run or two; raise UsageError when there is nothing to show."""
    wishes = wishes or Wishes()
    sources, answers = read_all(path, golden, wishes.request, wishes.watched)
    if wishes.search is not None:
        # the search tells of a net that no optimizer holds: it has no start() that could be given its Cells
        answers = answers._replace(gaps=[gap for gap in answers.gaps if gap.key != _UNTOLD])
    return ContentMaker(sources, wishes.with_code, wishes.everything).content(
        answers, wishes.search
    )


def read_all(
    path: str, golden: str, request: Request, watched: Sequence[RankSeries] = ()
) -> tuple[Sources, OneRun]:
    """Return all that was read of one run or two, and the answers about one run alone.

    Args:
        path: the run.
        golden: the golden run beside it; "" for none.
        request: which steps and ranks, and how they are read.
        watched: rows of the monitor of the same training, from another run.

    Raises:
        UsageError: when there is nothing to show.
    """
    run = open_run(path)
    snapshots = Snapshots(path)
    rows_of_golden = read_rows(golden) if golden else Rows()
    rows = read_rows(path)
    alone: tuple[list[Any], list[Any]] = ([], [])
    row_pairs = None
    if golden and _have_rows_alone((rows_of_golden, rows), golden, run):
        read = []
        parts = []
        row_pairs = compare_rows(rows_of_golden.ranks, rows.ranks, request.options.factor)
    elif golden:
        pairs, alone = pair_folders(open_run(golden), run, request.step, request.rank)
        units = [(of_a, of_b, request.options, snapshots) for of_a, of_b in pairs]
        parts = list(run_units(pair_part, units, request.workers))
        link_steps([part.summary for part in parts if part.summary is not None], pairs)
        read = [of_b for _, of_b in pairs]
    else:
        has_rows_alone = rows.ranks and not run.folders
        read = [] if has_rows_alone else folders(run, request.step, request.rank)
        alone_units = [(folder, snapshots) for folder in read]
        said = say("progress.reading")
        parts = list(run_units(run_part, alone_units, request.workers, said))
    if parts and all(part.error for part in parts):
        raise UsageError(parts[0].error)
    if not parts and not rows.ranks:
        raise UsageError(rows.unread[0])
    sources = Sources((golden, path), parts, alone, (rows_of_golden, rows), row_pairs)
    return sources, _answers(parts, read, snapshots, rows.ranks, watched)


def _have_rows_alone(rows: tuple[Rows, Rows], golden: str, run: Run) -> bool:
    """Return whether two runs have rows of the monitor, and neither has a dump."""
    have_rows = all(side.ranks for side in rows)
    return have_rows and not run.folders and not open_run(golden).folders


def _answers(
    parts: Sequence[Part],
    read: Sequence[DumpFolder],
    snapshots: Snapshots,
    ranks: Sequence[RankSeries],
    watched: Sequence[RankSeries],
) -> OneRun:
    """Return the answers about one run alone: of its dumps, and of its rows of the monitor or those of another run."""
    looked = [part.extras.looked for part in parts if part.extras.looked]
    scope = looked_at((item.step, item.rank, item.coverage) for item in looked)
    gaps = gaps_of(scope, snapshots) if parts else []
    gaps += gaps_of_rows(ranks) if ranks else []
    rows = said_of(ranks) if ranks else NOTHING
    all_rows = [*ranks, *watched]
    findings = findings_of(looked, snapshots, read, all_rows)
    trends = trends_of(looked, snapshots, all_rows)
    return OneRun(findings, scope, gaps, rows, trends, skipped_of(looked, all_rows))


def make_report(
    output: str | os.PathLike[str], path: str, golden: str = "", wishes: Wishes | None = None
) -> Outcome:
    """Write the report of a run, beside ``golden`` if given; raise UsageError when it is empty or cannot be written."""
    wishes = wishes or Wishes()
    return save(output, make_content(path, golden, wishes), wishes.language)


def save(
    output: str | os.PathLike[str], content: Content, language: str = "", follow: int = 0
) -> Outcome:
    """Write a page in the place of the one before; raise UsageError when it cannot be written.

    Args:
        output: the page.
        content: its content.
        language: "en", "zh", or "" for that of the browser.
        follow: after how many seconds the page reads itself again; 0 for never.
    """
    content.description["follow"] = follow
    try:
        with create_whole(output, "\n") as file:
            write(file, content, language)
        size = os.path.getsize(output)
    except OSError as error:
        reason = reason_of(error)
        raise UsageError(say("error.unwritable", path=os.fspath(output), reason=reason)) from error
    return Outcome(
        status=content.head.status,
        size=size,
        calls=content.description["counts"]["calls"],
        dropped=content.merged.dropped,
        unread=content.unread,
        headline=content.head.whole,
    )
