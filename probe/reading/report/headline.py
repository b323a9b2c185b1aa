# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The headline of a page: the heaviest finding of all readers, and the exit status that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from probe.findings.sentence import NOTHING, Finding, Sentence, say
from probe.reading.compare.answer.summary import (
    ComparisonResult,
    blind_said,
    harmless,
    lacks_said,
    one_sentence,
)
from probe.reading.compare.origins.origin import Origin
from probe.reading.one_run.coverage import Looked
from probe.reading.one_run.health.step import FAULT, NOTE, HealthFinding
from probe.reading.one_run.rank_checks import RankChecks
from probe.reading.one_run.trend import TrendFinding
from probe.reading.report.row_pairs import RowPairs
from probe.series.skipped import NONFINITE
from probe.store.file_names import Rank

#: how a headline looks, by the exit status: 0 nothing found, 1 something found, 2 it cannot be known
TONES = ("good", "bad", "unsure")
#: rules of ``probe check`` whose findings other readers tell
_OF_OTHERS = (NONFINITE, "ranks")


class OneRun(NamedTuple):
    """The answers about one run without a golden one; of two runs about B."""

    health: Sequence[HealthFinding] = ()  # the heaviest first
    looked: Looked = Looked([], [], [])  # how much was looked at
    gaps: Sequence[Sentence] = ()  # the parts that cannot be known
    rows: Sentence = NOTHING  # the rows of the monitor that were looked at, if there are any
    trends: Sequence[TrendFinding] = ()  # rules that hold in series of its dumps
    #: the recorded steps and their ranks whose update a loss scaler has left out
    skipped: frozenset[tuple[int | None, Rank]] = frozenset()

    @property
    def scope(self) -> Sentence:
        """Everything that was looked at."""
        if self.rows and self.looked.parts:
            return say("report.dumps_and_rows", dumps=self.looked.said, rows=self.rows)
        return self.rows or self.looked.said

    @property
    def faults(self) -> list[HealthFinding]:
        """The faults that no other reader tells."""
        return [
            item for item in self.health if item.weight == FAULT and item.rule not in _OF_OTHERS
        ]


class Told(NamedTuple):
    """A finding, and the sentence of the page about it."""

    said: Sentence
    finding: Finding


class Readers(NamedTuple):
    """The answers of all readers, the heaviest first."""

    result: ComparisonResult | None = None  # of two runs
    nan: Sequence[Origin] = ()  # the calls that make NaN/Inf
    run: OneRun = OneRun()
    ranks: RankChecks | None = None  # the answer about the ranks; None for one rank
    trends: Sequence[TrendFinding] = ()  # rules that hold in series, alarms of the monitor too
    unread: Sequence[Sentence] = ()  # why files could not be read
    rows: RowPairs | None = None  # of two runs that have rows of the monitor alone

    @property
    def faulty_nan(self) -> list[Origin]:
        """The calls that make NaN/Inf, without those of steps that a loss scaler has skipped."""
        return [item for item in self.nan if (item.step, item.rank) not in self.run.skipped]

    @property
    def _unnamed(self) -> list[Told]:
        """The calls that make NaN/Inf, without those that a difference names."""
        named = {origin.name for origin in self.result.origins} if self.result else set()
        return [
            Told(_placed(item.said, item.step, item.rank), item)
            for item in self.faulty_nan
            if item.name not in named
        ]

    @property
    def by_itself(self) -> list[Sentence]:
        """The list of what one run shows by itself; NaN/Inf of one run alone has cards."""
        nan = [item.said for item in self._unnamed] if self.result else []
        return [*nan, *(item.whole for item in self.run.health if is_listed(item))]

    @property
    def alone(self) -> list[Told]:
        """The findings in one run alone."""
        faults = [Told(item.whole, item) for item in self.run.faults]
        of_ranks = (
            [Told(_placed(item.said, item.step), item) for item in self.ranks.findings]
            if self.ranks is not None
            else []
        )
        in_series = [
            Told(say("report.in_series", name=item.name, step=item.step, said=item.said), item)
            for item in self.trends
        ]
        return [*self._unnamed, *faults, *of_ranks, *in_series]


def is_listed(item: HealthFinding) -> bool:
    """Return whether the page lists a finding of one run; calls that make NaN/Inf have cards."""
    return item.rule != NONFINITE or item.weight == NOTE


def _placed(said: Sentence, step: int | None, rank: Rank = None) -> Sentence:
    """Return a sentence with its step and rank."""
    where = [] if step is None else [say("nan.step", step=step)]
    where += [] if rank is None else [say("nan.rank", rank=rank)]
    return say("guard.at", where=say("list", parts=where), said=said) if where else said


class Headline(NamedTuple):
    """The headline of a page."""

    status: int  # the exit status
    said: Sentence
    others: int = 0  # how many further findings the page has
    finding: Finding | None = None  # the heaviest finding, if it is one of a reader

    @property
    def tone(self) -> str:
        """How it looks."""
        return TONES[self.status]

    @property
    def whole(self) -> Sentence:
        """The sentence with the number of the other findings, for a terminal."""
        more = say("report.other") if self.others == 1 else say("report.others", count=self.others)
        return say("report.found", finding=self.said, more=more if self.others else NOTHING)


def headline(readers: Readers) -> Headline:
    """Return the heaviest finding of all readers; without one the part that cannot be known, or what was looked at."""
    if readers.result:
        return _of_two(readers, readers.result)
    return _of_rows(readers, readers.rows) if readers.rows else _of_one(readers)


def _of_one(readers: Readers) -> Headline:
    found = readers.alone
    run = readers.run
    if found:
        return Headline(1, found[0].said, len(found) - 1, found[0].finding)
    gaps = [*readers.unread, *run.gaps]
    gaps += [item.said for item in readers.ranks.unknown] if readers.ranks is not None else []
    if gaps:
        return Headline(2, say("report.unsure", gap=gaps[0], looked=run.scope), len(gaps) - 1)
    return Headline(0, say("report.nothing", looked=run.scope))


def _of_rows(readers: Readers, rows: RowPairs) -> Headline:
    """Return the headline of two runs that have rows of the monitor alone."""
    alone = readers.alone
    if rows.first:
        return Headline(1, rows.said, len(alone))
    if alone:
        said = say("rows.agree_but", count=rows.compared, finding=alone[0].said)
        return Headline(1, said, len(alone) - 1, alone[0].finding)
    gaps = [*readers.unread, *rows.lacks, *readers.run.gaps]
    if gaps:
        said = say("report.unsure", gap=gaps[0], looked=readers.run.scope)
        return Headline(2, said, len(gaps) - 1)
    return Headline(0, say("rows.agree", count=rows.compared, looked=readers.run.scope))


def _of_two(readers: Readers, result: ComparisonResult) -> Headline:
    alone = readers.alone
    if not result.is_comparable:
        return Headline(2, one_sentence(result), len(result.origins) + len(alone))
    if result.origins:
        others = len(result.origins) - 1 + len(alone)
        return Headline(1, one_sentence(result), others, result.first)
    if not result.agrees:
        return Headline(1, say("report.no_origin"), len(alone))
    if alone:
        first = alone[0]
        said = say("report.agrees_but", finding=first.said)
        return Headline(1, said, len(alone) - 1, first.finding)
    gaps = [blind_said(result)] if result.blind else [*readers.unread]
    gaps += [lacks_said(result)] if result.lacks else []
    if gaps:
        return Headline(
            2, say("report.unsure_of_two", gap=gaps[0], looked=readers.run.scope), len(gaps) - 1
        )
    scope = readers.run.scope
    is_harmless = bool(harmless(result))
    return Headline(
        0, say("report.harmless" if is_harmless else "report.no_difference", looked=scope)
    )
