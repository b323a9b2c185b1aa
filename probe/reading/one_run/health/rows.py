# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Answers of one run from the rows of the monitor: alarms of its rules, and the first NaN/Inf in a series."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, say
from probe.findings.system import reason_of
from probe.naming import ranges
from probe.reading.one_run.health.step import FAULT, NOTE, HealthFinding
from probe.reading.one_run.trend import TrendFinding, findings_of
from probe.series.alarm import Alarm
from probe.series.file import RankSeries
from probe.series.history import LEAST_STEPS
from probe.series.neighbour import alarms_of_all
from probe.series.series import find_series, opened
from probe.series.series_name import is_strange
from probe.series.skipped import NONFINITE, judged_rows, skipped_steps
from probe.store.file_names import Rank

#: a step, and series -> its number
_Row = tuple[int, dict[str, float]]


class SeriesFinding(HealthFinding):
    """A rule that holds in a series."""

    @property
    def whole(self) -> Sentence:
        """Weight, step, series, rule and sentence."""
        said = say("report.in_series", name=self.name, step=self.step, said=self._said_of_rule)
        nothing = dict.fromkeys(("cell", "code", "more"), NOTHING)
        return say("health.line", weight=say("health.fault"), said=said, **nothing)

    @property
    def _said_of_rule(self) -> Sentence:
        return self.said


class AlarmFinding(SeriesFinding):
    """An alarm of the monitor."""

    @property
    def _said_of_rule(self) -> Sentence:
        return say("trend.alarm", rule=self.rule, said=self.said)


def series_findings(trends: Sequence[TrendFinding]) -> list[HealthFinding]:
    """Return rules that hold in series of dumps, as faults of a run."""
    return [
        SeriesFinding(FAULT, item.rule, item.said, item.name, item.step, rank=item.rank)
        for item in trends
    ]


class Rows(NamedTuple):
    """The rows of the monitor in a folder."""

    ranks: Sequence[RankSeries] = ()  # those that could be read
    unread: Sequence[Sentence] = ()  # why files could not be read


def read_rows(path: str) -> Rows:
    """Return the rows of the monitor in a folder; without a file of the monitor there are none."""
    found = [_series_or_reason(*item) for item in find_series(path)]
    ranks = [item for item in found if not isinstance(item, Sentence)]
    return Rows(ranks, [item for item in found if isinstance(item, Sentence)])


def _series_or_reason(place: str, rank: Rank) -> RankSeries | Sentence:
    """Return the series of one rank, or the reason why they cannot be read."""
    try:
        return opened(place, rank)
    except UsageError as error:
        return reason_of(error)


def alarm_finding(alarm: Alarm, rank: Rank) -> AlarmFinding:
    """Return an alarm as a finding of one rank."""
    return AlarmFinding(FAULT, alarm.rule, alarm.said, alarm.series, alarm.step, rank=rank)


def alarms_of(ranks: Sequence[RankSeries]) -> list[AlarmFinding]:
    """Return the alarms of the rules over the rows, in the order of the steps."""
    found = [alarm_finding(alarm, rank) for rank, alarm in alarms_of_all(ranks)]
    return sorted(found, key=lambda item: -1 if item.step is None else item.step)


def nonfinite_of(ranks: Sequence[RankSeries]) -> list[HealthFinding]:
    """Return the first NaN/Inf of each rank: the series that have it in the earliest such step."""
    return list(_nonfinite(ranks, lambda rank: rank.rows()))


def faults_of(ranks: Sequence[RankSeries]) -> list[HealthFinding]:
    """Return the first NaN/Inf of each rank that is no event of a loss scale."""
    return list(_nonfinite(ranks, judged_rows))


def skips_of(ranks: Sequence[RankSeries]) -> list[HealthFinding]:
    """Return the steps of each rank whose update a loss scaler has left out, as notes."""
    found = [(rank.rank, sorted(skipped_steps(rank))) for rank in ranks]
    return [
        HealthFinding(NOTE, NONFINITE, _skipped(steps), step=steps[0], rank=rank)
        for rank, steps in found
        if steps
    ]


def _skipped(steps: Sequence[int]) -> Sentence:
    if len(steps) > 1:
        return say("rows.skipped_several", steps=", ".join(ranges(steps)), count=len(steps))
    return say("rows.skipped", step=steps[0])


def _nonfinite(
    ranks: Sequence[RankSeries], rows_of: Callable[[RankSeries], Iterator[_Row]]
) -> Iterator[HealthFinding]:
    for rank in ranks:
        for step, values in rows_of(rank):
            strange = [name for name, value in values.items() if is_strange(name, value)]
            if strange:
                said = say("rows.nonfinite", series=strange[:5], count=len(strange))
                yield HealthFinding(FAULT, NONFINITE, said, strange[0], step, rank=rank.rank)
                break


def findings_in(ranks: Sequence[RankSeries]) -> list[TrendFinding]:
    """Return the alarms of the rules, and NaN/Inf in series that no rule looks at."""
    alarms = findings_of(ranks)
    told = {item.rank for item in alarms if item.rule == NONFINITE}
    further = [
        TrendFinding(NONFINITE, item.name, item.rank, item.step, item.said)
        for item in faults_of(ranks)
        if item.rank not in told and item.step is not None
    ]
    return [*alarms, *further]


def gaps_of(ranks: Sequence[RankSeries]) -> list[Sentence]:
    """Return the parts that cannot be known: of fewer rows than rules need, that none of them holds."""
    rows = min((len(rank.steps) for rank in ranks), default=0)
    if rows >= LEAST_STEPS:
        return []
    return [say("gap.rows", rows=rows, least=LEAST_STEPS)]


def said_of(ranks: Sequence[RankSeries]) -> Sentence:
    """Return the scope, as "24 rows of the monitor, steps 0-23, 7 series"."""
    steps = sorted({step for rank in ranks for step in rank.steps})
    names = {name for rank in ranks for name in rank.names}
    # a series may be measured in some rows
    measured = [len(values) for rank in ranks for _, values in rank.rows()]
    return say(
        "rows.looked",
        rows=sum(len(rank.steps) for rank in ranks),
        steps=", ".join(ranges(steps)),
        series=len(names),
        numbers=sum(measured),
    )
