# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The answer of all readers about what is on disk: the heaviest finding, as the page of ``probe report`` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.reading.check.check import check
from probe.reading.compare.answer.comparison import Request
from probe.reading.compare.origins.origin import Origin
from probe.reading.dumps.work import HERE, Workers
from probe.reading.one_run.health.run_look import NAN
from probe.reading.one_run.health.step import SUSPICIOUS
from probe.reading.report.headline import Headline, Readers, headline
from probe.reading.report.report import read_all
from probe.reading.report.sources import readers_of
from probe.search.cause import GUESS, Cause, cause_of
from probe.search.unheld import unheld
from probe.series.file import RankSeries
from probe.store.file_names import Rank

#: the sentence about nets that no optimizer holds
_UNTOLD = "gap.outside"
#: the sentences about circumstances of parameters that no optimizer holds
_TOLD = ("check.updates", "check.trainable")
#: the sentences about findings that other steps contradict
_NOT_HELD = "health.not_held"
_CONTRADICTED = (
    "health.gradient_later",
    "health.update_later",
    "health.skipped",
    "rows.skipped",
    "rows.skipped_several",
)


@dataclass(frozen=True)
class DiskLook:
    """All readers have looked at one run, or at two.

    Attributes:
        status: 0 nothing found, 1 something found, 2 it cannot be known.
        said: the heaviest finding, or how much was looked at.
        cause: the heaviest finding, if it names a thing that can be changed.
        suspicions: the suspicious findings of one run, which are guesses.
        step: the step of the heaviest finding; None where it has none.
        first_apart: the first step in which the rows of two runs differ; None without one.
        others: how many further findings there are.
        gaps: the parts that cannot be known.
        lacks: the rows that one of two runs lacks.
        untold: nets that no optimizer holds: whether they should be trained, the program alone knows.
        circumstances: how the circumstances of two runs differ, the most important first.
        looked: how much was looked at.
        remarks: what is no cause, as other steps of the training contradict it.
        is_apart: whether two runs differ.
        doubt: why the difference of two runs may be chance; NOTHING where it is none.
    """

    status: int
    said: Sentence
    cause: Cause | None = None
    suspicions: Sequence[Cause] = ()
    step: int | None = None
    first_apart: int | None = None
    others: int = 0
    gaps: Sequence[Sentence] = ()
    lacks: Sequence[Sentence] = ()
    untold: Sequence[Sentence] = ()
    circumstances: Sequence[Sentence] = ()
    looked: Sentence = NOTHING
    remarks: Sequence[Sentence] = ()
    is_apart: bool = False
    doubt: Sentence = NOTHING


def look(
    path: str, golden: str = "", watched: Sequence[RankSeries] = (), workers: Workers = HERE
) -> DiskLook:
    """Ask all readers about a run.

    Args:
        path: the run.
        golden: the golden run beside it; "" for none.
        watched: rows of the monitor of the same training, from another run.
        workers: the processes that work.

    Raises:
        UsageError: when there is nothing to look at.
    """
    sources, answers = read_all(path, golden, Request(workers=workers), watched)
    result = sources.compared()
    readers = readers_of(sources, result, answers)
    head = headline(readers)
    first_apart = _first_apart(readers)
    found = DiskLook(
        head.status,
        _without_source(head.said),
        cause=cause_of(_heaviest(head, readers), result),
        suspicions=_suspicions(readers),
        step=first_apart if head.finding is None else getattr(head.finding, "step", None),
        first_apart=first_apart,
        others=head.others,
        gaps=_gaps(readers),
        lacks=() if readers.rows is None else readers.rows.lacks,
        circumstances=_circumstances(path, golden) if golden else (),
        looked=answers.scope,
        remarks=_remarks(readers),
        is_apart=result is not None and result.first is not None,
    )
    return _with_unheld(found, path, golden) if result is not None else found


def _with_unheld(seen: DiskLook, path: str, golden: str) -> DiskLook:
    """Return the look at two runs; parameters that the optimizers of one lack come before what follows from that."""
    cause = unheld(path, golden, seen.cause)
    if cause is None:
        return seen
    return replace(
        seen,
        status=1,
        said=cause.said,
        cause=cause,
        is_apart=True,
        circumstances=[line for line in seen.circumstances if not _is_told(line)],
    )


def _is_told(line: Sentence) -> bool:
    """Return whether the cause tells a circumstance: an optimizer lacks parameters, or some are frozen."""
    keys = {fact.key for fact in line.facts.values() if isinstance(fact, Sentence)}
    return not keys.isdisjoint(_TOLD)


def by_chance(seen: DiskLook, alone: DiskLook, doubt: Sentence) -> DiskLook:
    """Return the look at two runs whose difference may be chance: the first one alone may have a cause.

    Args:
        seen: the look at both.
        alone: the look at the run without the golden one.
        doubt: why the difference may be chance.
    """
    beside = replace(
        alone,
        others=seen.others,
        first_apart=seen.first_apart,
        circumstances=seen.circumstances,
        is_apart=True,
        doubt=doubt,
    )
    return beside if alone.status == 1 else replace(beside, status=2, said=doubt)


def of_program(seen: DiskLook) -> DiskLook:
    """Return a look at a run of ``probe find``: a net that no optimizer holds, such as a target net, is no gap.

    The model is not given to it, so the user cannot give further Cells either.
    """
    untold = [say("find.untold", **gap.facts) for gap in seen.gaps if gap.key == _UNTOLD]
    gaps = [gap for gap in seen.gaps if gap.key != _UNTOLD]
    if not untold:
        return seen
    found = replace(seen, gaps=gaps, untold=untold)
    if seen.status != 2 or seen.said.key != "report.unsure":
        return found
    if gaps:
        return replace(found, said=say("report.unsure", gap=gaps[0], looked=seen.looked))
    return replace(found, status=0, said=say("report.nothing", looked=seen.looked))


def _heaviest(head: Headline, readers: Readers) -> Finding | None:
    """Return the heaviest finding; NaN/Inf stands before a difference that was made in steps that are not compared."""
    finding = head.finding
    if isinstance(finding, Origin) and finding.is_uncompared and readers.faulty_nan:
        return readers.faulty_nan[0]
    return finding


def _suspicions(readers: Readers) -> list[Cause]:
    """Return the suspicious findings of one run. Some trainings have them on purpose."""
    found = [item for item in readers.run.health if item.weight == SUSPICIOUS]
    causes = [cause_of(item, None) for item in found]
    return [replace(cause, strength=GUESS) for cause in causes if cause is not None]


def _remarks(readers: Readers) -> list[Sentence]:
    """Return the notes that other steps contradict, of several about NaN/Inf the first; and what no optimizer holds.

    A training may freeze the better part of a model by leaving it out of the optimizer, or forget it.
    """
    told_keys = {*_CONTRADICTED, _NOT_HELD}
    notes = [item for item in readers.run.health if item.said.key in told_keys]
    told: dict[tuple[str, str, Rank], Sentence] = {}
    for item in notes:
        name = "" if item.rule == NAN else item.name
        told.setdefault((item.rule, name, item.rank), item.said)
    return list(told.values())


def _without_source(said: Sentence) -> Sentence:
    """Return a sentence without the thresholds and sources of rules: these are for ``probe trend``."""
    if said.key == "trend.finding":
        return say("trend.alarm", rule=said.facts["rule"], said=said.facts["said"])
    return Sentence(said.key, {key: _plain(fact) for key, fact in said.facts.items()})


def _plain(fact: Any) -> Any:
    """Return a fact; a sentence, also one in a list, without thresholds and sources."""
    if isinstance(fact, Sentence):
        return _without_source(fact)
    return [_plain(part) for part in fact] if isinstance(fact, (list, tuple)) else fact


def _first_apart(readers: Readers) -> int | None:
    """Return the first step in which the rows of two runs differ; None without one."""
    has_difference = readers.rows is not None and bool(readers.rows.first)
    return int(readers.rows.first.facts["step"]) if readers.rows and has_difference else None


def _gaps(readers: Readers) -> list[Sentence]:
    """Return the parts that cannot be known, each once."""
    found = [*readers.unread, *readers.run.gaps]
    if readers.ranks is not None:
        found += [item.said for item in readers.ranks.unknown]
    if readers.rows is not None:
        found += readers.rows.lacks
    return list(dict.fromkeys(found))


def _circumstances(path: str, golden: str) -> list[Sentence]:
    """Return how the circumstances of two runs differ; nothing where one of them has none."""
    try:
        return [item.line for item in check(golden, path).differences]
    except UsageError:
        return []
