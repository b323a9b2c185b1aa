# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The rules of msprobe's key "alert": each looks at a number and the running mean of its series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.series import looks

_KEPT = 0.99  # the part of the older mean in a running mean


class RunningRule(NamedTuple):
    """A rule of msprobe."""

    statistics: tuple[str, ...]  # the numbers that it looks at; none for all
    holds: Callable[[float, float, Any], bool]  # of a value, the running mean, and the threshold


MSPROBE = {
    "AnomalyTurbulence": RunningRule(("norm", "mean"), looks.is_above),
    "AnomalyNan": RunningRule((), looks.is_strange),
}


class RunningRules:
    """Rules of msprobe with their thresholds, and the running mean of each series."""

    def __init__(self, rules: Sequence[tuple[str, float | None]]) -> None:
        self._rules = rules
        self._means: dict[tuple[str, str], float] = {}

    def look(self, step: int, tag: str, op: str, value: float) -> Sentence:
        """Return what the first rule that holds says about the number ``op`` of a tensor; else nothing."""
        mean = self._means.setdefault((tag, op), abs(value))
        self._means[tag, op] = _KEPT * mean + (1 - _KEPT) * abs(value)
        for rule, threshold in self._rules:
            statistics, holds = MSPROBE[rule]
            if (not statistics or op in statistics) and holds(value, mean, threshold):
                return say(
                    "alarm.msprobe", rule=rule, tag=tag, op=op, value=value, mean=mean, step=step
                )
        return NOTHING
