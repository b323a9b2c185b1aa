# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The page of a search: that of the recorded steps, with the experiments that led from the symptom to the cause."""

from __future__ import annotations

import os

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.report.report import Wishes as PageWishes, make_report
from probe.reading.report.told_search import ToldExperiment, ToldSearch
from probe.search.answer import Diagnosis, code_of
from probe.search.cause import GUESS
from probe.search.ledger import Result
from probe.search.recordings import RECORD, golden_dump
from probe.search.searching import Search
from probe.search.table import EXPERIMENTS
from probe.search.watching import watched_name, watched_rows

_FILE = "report.html"
#: outcomes that have seen a fault, and those that exclude one
_BAD = frozenset(("symptom", "fails", "differs", "cause", "varies", "wrong", "goes", "found"))
_GOOD = frozenset(("quiet", "agrees", "no_cause", "repeats", "right"))


def written_page(search: Search, found: Diagnosis) -> tuple[str | None, Sentence]:
    """Write the page of a search that has ended.

    Args:
        search: the search.
        found: its answer, which is not lost where the page cannot be written.

    Returns:
        The page, and a sentence about it. None and NOTHING where no step was seen.
    """
    lab = search.lab
    name = RECORD if lab.has_steps(RECORD) else watched_name(lab)
    dump = lab.place(name, "dump")
    if not os.path.isdir(dump) or not lab.ledger.results:
        return None, NOTHING
    golden = golden_dump(lab) if name == RECORD else ""
    path = os.path.join(lab.ledger.folder, _FILE)
    told = ToldSearch(
        [_told(result) for result in lab.ledger.results.values()],
        found.first_line,
        _code(found, lab.user_folder),
        [*found.reasons()],
        _tone(found),
    )
    try:
        make_report(path, dump, golden, PageWishes(search=told, watched=watched_rows(lab)))
    except (UsageError, OSError) as error:
        return None, say("find.no_page", reason=str(error))
    return path, say("find.page", path=path)


def _told(result: Result) -> ToldExperiment:
    asks = say(EXPERIMENTS[result.name].asks)
    tone = "bad" if result.outcome in _BAD else "good" if result.outcome in _GOOD else ""
    return ToldExperiment(result.name, asks, result.learned, result.seconds, tone)


def _code(found: Diagnosis, folder: str) -> Sentence:
    """Return the line of code; its file is told without the folders of the machine."""
    cause = found.cause
    if cause is None or not cause.file:
        return NOTHING
    relative = os.path.relpath(cause.file, folder)
    file = os.path.basename(cause.file) if relative.startswith(os.pardir) else relative
    return code_of(cause, file)


def _tone(found: Diagnosis) -> str:
    if found.cause is not None and found.cause.strength != GUESS:
        return "bad"
    return ("good", "bad", "unsure")[found.status] if found.cause is None else "unsure"
