# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""All that was read of one run, or of two: the page is made of it, and so is the answer of ``probe find``."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.findings.sentence import Sentence
from probe.reading.compare.answer.summary import ComparisonResult
from probe.reading.one_run.health.rows import Rows, findings_in
from probe.reading.one_run.nan import in_order
from probe.reading.one_run.rank_checks import RankChecks, check_digests
from probe.reading.one_run.trend import TrendFinding
from probe.reading.report.headline import OneRun, Readers
from probe.reading.report.part import Part
from probe.reading.report.row_pairs import RowPairs
from probe.series.skipped import NONFINITE


class Sources(NamedTuple):
    """All that was read."""

    paths: tuple[str, str]  # A, "" for one run, and B
    parts: list[Part]  # each step of each rank
    alone: tuple[list[Any], list[Any]] = ([], [])  # dumps of one side only
    rows: tuple[Rows, Rows] = (Rows(), Rows())  # the rows of the monitor of A and B
    row_pairs: RowPairs | None = None  # the comparison of two runs that have rows alone

    def compared(self) -> ComparisonResult | None:
        """Return the comparison of the dumps of two runs; None for one run, and where there are rows alone."""
        if not self.paths[0] or self.row_pairs is not None:
            return None
        summaries = [part.summary for part in self.parts if part.summary]
        return ComparisonResult(self.paths, summaries, self.alone)


def readers_of(sources: Sources, result: ComparisonResult | None, answers: OneRun) -> Readers:
    """Return the answers of all readers; ``answers`` has the findings in one run alone."""
    parts = sources.parts
    reasons = (part.error or part.lost for part in parts)
    unread: list[Sentence] = [reason for reason in reasons if reason]
    unread += [why for side in sources.rows for why in side.unread]
    return Readers(
        result=result,
        nan=in_order([part.found for part in parts if part.found]),
        run=answers,
        ranks=_ranks(parts),
        trends=_trends(sources, answers),
        unread=unread,
        rows=sources.row_pairs,
    )


def _trends(sources: Sources, answers: OneRun) -> list[TrendFinding]:
    """Return the rules that hold in series of dumps and of the monitor."""
    found = [*answers.trends, *findings_in(sources.rows[1].ranks)]
    return sorted(found, key=lambda item: (item.rule != NONFINITE, item.step))


def _ranks(parts: list[Part]) -> RankChecks | None:
    """Return the answer of ``probe ranks``; None for one rank."""
    digests = [part.digest for part in parts if part.digest is not None]
    ranks = {digest.rank for digest in digests}
    return check_digests(digests) if len(ranks) > 1 else None
