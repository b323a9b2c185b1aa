# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The headline of a page: the heaviest finding of all readers, and the exit status that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.one_run.coverage import Looked
from probe.reading.one_run.health.step import FAULT, HealthFinding
from probe.reading.one_run.rank_checks import RankChecks
from probe.reading.one_run.trend import TrendFinding

#: how a headline looks, by the exit status: 0 nothing found, 1 something found, 2 it cannot be known
TONES = ("good", "bad", "unsure")


class OneRun(NamedTuple):
    """The answers about one run without a golden one."""

    health: Sequence[HealthFinding] = ()  # the heaviest first
    looked: Looked = Looked([], [], [])  # how much was looked at
    gaps: Sequence[Sentence] = ()  # the parts that cannot be known


class Headline(NamedTuple):
    """The headline of the page of one run."""

    status: int  # the exit status
    said: Sentence
    others: int  # how many further findings the page has

    @property
    def tone(self) -> str:
        """How it looks."""
        return TONES[self.status]


def headline(
    nan: Sequence[Sentence],
    answers: OneRun,
    ranks: RankChecks | None,
    trends: Sequence[TrendFinding],
    unread: Sequence[str],
) -> Headline:
    """Return the heaviest finding of one run.

    Args:
        nan: the calls that make NaN/Inf, the first at the front.
        answers: the findings of the rules, and the scope.
        ranks: the answer about the ranks; None for one rank.
        trends: rules that hold in series, alarms of the monitor too.
        unread: why dumps could not be read.
    """
    faults = [item.whole for item in answers.health if item.weight == FAULT and item.rule not in ("NaN/Inf", "ranks")]
    of_ranks = [item.said for item in ranks.findings] if ranks is not None else []
    of_series = [say("report.in_series", name=item.name, step=item.step, said=item.said) for item in trends]
    found = [*nan, *faults, *of_ranks, *of_series]
    if found:
        others = len(found) - 1
        more = say("report.others", count=others) if others else NOTHING
        return Headline(1, say("report.found", finding=found[0], more=more), others)
    gaps: list[Sentence | str] = [*answers.gaps, *unread]
    if ranks is not None and ranks.status == 2:
        gaps.append(say("ranks.not_known", looked=ranks.looked))
    if gaps:
        return Headline(2, say("report.unsure", gap=gaps[0], looked=answers.looked.said), len(gaps) - 1)
    return Headline(0, say("report.nothing", looked=answers.looked.said), 0)
