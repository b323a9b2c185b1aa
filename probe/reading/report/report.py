# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes a report: reads the dumps in as many processes as there are cores, and writes the page.

The page is one HTML file that needs neither network, server nor Python.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from typing import IO, NamedTuple

from probe.errors import UsageError
from probe.reading.check.snapshot import Snapshots
from probe.reading.compare.answer.comparison import Request, pair_folders
from probe.reading.dumps.outputs import create_whole
from probe.reading.dumps.query import folders
from probe.reading.dumps.run import Run, open as open_run
from probe.reading.dumps.work import Workers, run_units
from probe.reading.one_run.health.run_check import findings_of
from probe.reading.report.columns import packed, packed_text
from probe.reading.report.content import Content, ContentMaker
from probe.reading.report.part import CALL_COLUMNS, ROW_COLUMNS, ROW_NUMBERS
from probe.reading.report.readers import pair_part, run_part
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
    sides = [side.path if isinstance(side, Run) else os.fspath(side) for side in (a, b) if side is not None]
    if lang not in ("", "en", "zh"):
        raise UsageError(f'lang: {lang!r} is not "en", "zh" or ""')
    wishes = Wishes(Request(step=step, rank=rank, workers=Workers(jobs, scheduler)), language=lang)
    return make_report(path, sides[-1], sides[0] if b is not None else "", wishes)


def make_content(path: str, golden: str = "", wishes: Wishes | None = None) -> Content:
    """Read one run or compare two, and return the content of the report.

    Raise UsageError when there is no dump, or nothing can be compared.
    """
    wishes = wishes or Wishes()
    step, rank, workers = wishes.request.step, wishes.request.rank, wishes.request.workers
    run, snapshots = open_run(path), Snapshots(path)
    if golden:
        pairs, alone = pair_folders(open_run(golden), run, step, rank)
        units = [(*pair, wishes.request.options) for pair in pairs]
        parts = list(run_units(pair_part, units, workers))
        health = []
    else:
        if not run.folders and find_series(path):
            raise UsageError(
                f"{path} has rows of the monitor and no dump, which a report needs: see probe watch {path}"
            )
        chosen = [(folder, snapshots) for folder in folders(run, step, rank)]
        parts, alone = list(run_units(run_part, chosen, workers, "reading")), ([], [])
        looked = [part.extras.looked for part in parts if part.extras.looked]
        health = findings_of(looked, snapshots, [folder for folder, _ in chosen])
    if all(part.error for part in parts):
        raise UsageError(parts[0].error)
    return ContentMaker((golden, path), parts, alone, wishes.with_code, wishes.everything).content(health)


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


_HERE = os.path.dirname(os.path.abspath(__file__))
#: the scripts, in the order in which they are joined
SCRIPTS = (
    "vendor/uPlot.iife.min.js", "page/language.js", "page/data.js", "page/elements.js", "page/strip.js",
    "page/table.js", "page/lines.js", "page/overview.js", "page/tree.js", "page/calls.js", "page/call.js",
    "page/steps.js", "page/ranks.js", "page/main.js",
)  # fmt: skip
STYLES = ("vendor/uPlot.min.css", "page/page.css")


def read(name: str) -> str:
    """Return the text of a file that lies beside this module."""
    with open(os.path.join(_HERE, *name.split("/")), encoding="utf-8") as file:
        return file.read()


def script(language: str) -> str:
    """Return the whole script of the page; the language "" leaves it to the browser."""
    joined = "\n".join(read(name) for name in SCRIPTS[1:])
    constants = f"const TEXTS = {read('page/texts.json').strip()};\nconst LANGUAGE = {json.dumps(language)};\n"
    return f'{read(SCRIPTS[0])}\n(() => {{\n"use strict";\n{constants}{joined}\n}})();\n'.replace(
        "</script", "<\\/script"
    )


def write(file: IO[str], content: Content, language: str = "") -> None:
    """Write the page into a file; the language "" leaves it to the browser."""
    code, style = script(language), "\n".join(map(read, STYLES))
    description = content.description
    title = f"{description['a']} | {description['b']}" if description["two"] else description["b"]
    head, _, rest = read("page/page.html").partition("@DATA@")
    head = head.replace("@LANGUAGE@", language or "en")
    head = head.replace("@STYLE_HASH@", _hash(style)).replace("@SCRIPT_HASH@", _hash(code)).replace("@STYLE@", style)
    file.write(head.replace("@TITLE@", html.escape(title)))
    _column(file, "description", "json", packed_text(description))
    for group, columns, names in (
        ("call", content.merged.calls, (*CALL_COLUMNS, "index")),
        ("row", content.merged.rows, (*ROW_COLUMNS, *ROW_NUMBERS)),
    ):
        for name in names:
            base = columns.get(f"{name[:-1]}a") if name.endswith("_b") and description["two"] else None
            column = columns[name]
            is_changed = base is not None and base.typecode == column.typecode and len(base) == len(column)
            _column(file, f"{group}-{name}", f"{column.typecode}{'^' if is_changed else ''}", packed(column, base))
    file.write(rest.replace("@SCRIPT@", code))


def _column(file: IO[str], name: str, kind: str, letters: str) -> None:
    file.write(f'<script type="text/plain" id="data-{name}" data-kind="{kind}">{letters}</script>\n')


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
