# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Makes a report: reads the dumps in as many processes as there are cores, and writes the page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from probe.errors import UsageError
from probe.reading.compare.answer.comparison import Request, pair_folders
from probe.reading.dumps.outputs import create_whole
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.work import Workers, run_units
from probe.reading.report.content import Content, ContentMaker
from probe.reading.report.page import write
from probe.reading.report.pair_part import pair_part
from probe.reading.report.run_part import run_part
from probe.series.series import find_series

#: above this size a page is slow to open, and mails refuse it
LARGE = 30_000_000


class Wishes(NamedTuple):
    """The wishes of the user for a report."""

    request: Request = Request()  # which steps and ranks, the processes that work, and the settings of the comparison
    with_code: bool = True  # whether source lines and folders of the code are kept
    everything: bool = False  # whether all rows are kept, however many there are
    language: str = ""  # "en", "zh", or "" for that of the browser


class Outcome(NamedTuple):
    """The outcome of a report.

    Attributes:
        status: 0 nothing found, 1 something found, 2 not comparable.
        size: the size of the page in bytes.
        calls: how many calls it tells about.
        dropped: how many of them others stand for.
        unread: why dumps could not be read, a line for each.
    """

    status: int
    size: int
    calls: int
    dropped: int
    unread: Sequence[str] = ()


def report(
    a: str | os.PathLike[str] | Run,
    b: str | os.PathLike[str] | Run | None = None,
    path: str | os.PathLike[str] = "report.html",
    step: str = "",
    rank: str = "",
    jobs: int = 1,
    scheduler: str = "",
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

    Raises:
        UsageError: when there is no dump, nothing can be compared, or the page cannot be written.

    Example::

        outcome = probe.report("golden", "mine", path="report.html")
        print(outcome.status, outcome.calls)
    """
    sides = [side.path if isinstance(side, Run) else os.fspath(side) for side in (a, b) if side is not None]
    wishes = Wishes(Request(step=step, rank=rank, workers=Workers(jobs, scheduler)))
    return make_report(path, sides[-1], sides[0] if b is not None else "", wishes)


def make_content(path: str, golden: str = "", wishes: Wishes | None = None) -> Content:
    """Read one run or compare two, and return the content of the report.

    Raise UsageError when there is no dump, or nothing can be compared.
    """
    wishes = wishes or Wishes()
    step, rank, workers = wishes.request.step, wishes.request.rank, wishes.request.workers
    run = open_run(path)
    if golden:
        pairs, alone = pair_folders(open_run(golden), run, step, rank)
        units = [(*pair, wishes.request.options) for pair in pairs]
        parts = list(run_units(pair_part, units, workers))
    else:
        if not run.folders and find_series(path):
            raise UsageError(
                f"{path} has rows of the monitor and no dump, which a report needs: see probe watch {path}"
            )
        chosen = [(folder,) for folder in folders(run, step, rank)]
        parts, alone = list(run_units(run_part, chosen, workers, "reading")), ([], [])
    if all(part.error for part in parts):
        raise UsageError(parts[0].error)
    return ContentMaker((golden, path), parts, alone, wishes.with_code, wishes.everything).content()


def make_report(output: str | os.PathLike[str], path: str, golden: str = "", wishes: Wishes | None = None) -> Outcome:
    """Write the report of one run, ``path``, or of two: ``golden`` is A.

    Raises:
        UsageError: when there is no dump, nothing can be compared, or the file cannot be written.
    """
    wishes = wishes or Wishes()
    content = make_content(path, golden, wishes)
    try:
        with create_whole(output, "\n") as file:
            write(file, content, wishes.language)
        size = os.path.getsize(output)
    except OSError as error:
        raise UsageError(f"{os.fspath(output)} cannot be written: {error.strerror or error}") from error
    counts = content.description["counts"]
    return Outcome(content.status, size, counts["calls"], content.merged.dropped, content.unread)
