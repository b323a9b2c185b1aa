# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""An alarm: a rule that holds for a series from a step on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from probe.findings.sentence import Finding, Sentence
from probe.series.history import History, Look, Now
from probe.series.rules import Condition


class Chosen(NamedTuple):
    """A rule that looks at one series."""

    rule: str
    warm_up: int  # the number of values before it looks
    threshold: float
    look: Look


def chosen(
    conditions: Iterable[tuple[str, Condition]], limits: Mapping[str, float]
) -> list[Chosen]:
    """Return the rules that look at one series; those that look at several together are left out."""
    looking = ((rule, condition, condition.look_of_series()) for rule, condition in conditions)
    return [
        Chosen(rule, condition.warm_up, limits[rule], look)
        for rule, condition, look in looking
        if look is not None
    ]


@dataclass(frozen=True)
class Alarm(Finding):
    """A rule holds for a series from now on.

    Attributes:
        rule: the rule's name.
        series: the name of the series.
        step: the step.
        said: the numbers, and since when.
    """

    rule: str
    series: str
    step: int
    said: Sentence


def holding(
    series: str, history: History, rules: list[Chosen], value: float, now: Now
) -> Iterator[Alarm]:
    """Yield the rules that hold for a value, and did not hold a moment ago."""
    for chosen in rules:
        if history.count >= chosen.warm_up:
            said = chosen.look(history, value, chosen.threshold, now)
            if said:
                if said.key not in history.active:
                    yield Alarm(chosen.rule, series, now.step, said)
                history.active[said.key] = now.step
