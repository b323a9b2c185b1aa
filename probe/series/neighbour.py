# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Compares the numbers of parameters on two ranks, step by step, for the monitor and for ``probe watch``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from probe.findings.sentence import say
from probe.series.alarm import Alarm
from probe.series.file import RankSeries
from probe.series.replicas import Held, judge
from probe.series.series import Follower
from probe.series.series_name import entered, parse
from probe.store.file_names import Rank, rank_name

RULE = "ranks apart"
_LEAST_LINKS = 2  # norms of two gradients may be equal once by chance
_SAME = 1e-5  # norms of equal parameters are equal on all ranks; this allows for other processors


class RankPair:
    """Two ranks.

    Parameters that differ from the first comparison on are parts, and not compared, unless evidence says that both
    ranks hold replicas: equal gradients enter the optimizers.
    """

    def __init__(self) -> None:
        self._equal: dict[str, bool] = {}
        self._linked: dict[
            str, int
        ] = {}  # parameter that differs -> how often its gradients were equal

    def compare(
        self, step: int, own: Mapping[str, float], others: Mapping[str, float], name: str
    ) -> Iterator[Alarm]:
        """Yield the parameters that differ from those of the other rank, whose folder has a name."""
        for series, value in own.items():
            other = others.get(series)
            if other is None or not parse(series).is_parameter:
                continue
            is_equal = _is_same(value, other)
            facts = {"value": value, "other": other, "rank": name, "step": step}
            if self._equal.setdefault(series, is_equal) and not is_equal:
                self._equal[series] = False  # told once
                self._linked[series] = _LEAST_LINKS
                yield Alarm(RULE, series, step, say("alarm.ranks_apart", **facts))
            elif not is_equal and self._is_linked(series, own, others):
                yield Alarm(RULE, series, step, say("alarm.ranks_differ", **facts))

    def _is_linked(self, name: str, own: Mapping[str, float], others: Mapping[str, float]) -> bool:
        """Return whether the gradients of a parameter are equal for the last time that was needed; once."""
        gradient = gradient_of(name, own)
        links = self._linked.get(name, 0)
        if not gradient or gradient not in others or links >= _LEAST_LINKS:
            return False
        left = own[gradient]
        right = others[gradient]
        is_same = _is_same(left, right) and min(left, right) > 0  # zeros are equal by themselves
        held: dict[Rank, Held] = {
            side: Held(side, gradient=0 if is_same else side + 1) for side in (0, 1)
        }
        if not judge(held, {}, False).apart:
            return False
        self._linked[name] = links + 1
        return links + 1 == _LEAST_LINKS


def _is_same(value: float, other: float) -> bool:
    return abs(value - other) <= _SAME * abs(value)


def gradient_of(parameter: str, values: Mapping[str, float]) -> str:
    """Return the series of the gradient of a parameter that enters the optimizer; "" where it is not measured."""
    arrived = f"{parse(parameter).owner}.grad"
    return next((name for name in (entered(arrived), arrived) if name in values), "")


def between(own: RankSeries, other: RankSeries) -> list[Alarm]:
    """Return the alarms of a rank beside another one, from all rows of both."""
    rows = dict(other.rows())
    pair = RankPair()
    name = other.rank if isinstance(other.rank, str) else rank_name(other.rank)
    found: list[Alarm] = []
    for step, values in own.rows():
        if step in rows:
            found += pair.compare(step, values, rows[step], name)
    return found


def around(ranks: Sequence[RankSeries]) -> list[list[Alarm]]:
    """Return for each rank its alarms beside the next one; csv files of TrainerMon have none."""
    following = [*ranks[1:], *ranks[:1]]
    is_several = len(ranks) > 1
    return [
        between(own, other) if is_several and os.path.isfile(own.path) else []
        for own, other in zip(ranks, following)
    ]


class RankAlarm(NamedTuple):
    """An alarm of one rank."""

    rank: Rank
    alarm: Alarm


def alarms_of_all(
    ranks: Sequence[RankSeries], thresholds: Mapping[str, float] | None = None
) -> list[RankAlarm]:
    """Return the alarms of all ranks: of the rules over the rows of each, and beside the next rank."""
    return [
        RankAlarm(rank.rank, alarm)
        for rank, apart in zip(ranks, around(ranks))
        for alarm in [*Follower(thresholds).begin(rank), *apart]
    ]
