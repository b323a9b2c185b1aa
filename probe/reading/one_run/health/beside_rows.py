# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Rules of recorded steps beside the rows of the monitor: what another step does is on purpose in these steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import NamedTuple

from probe.findings.sentence import say
from probe.reading.one_run.health.step import NOTE, HealthFinding
from probe.series.file import RankSeries
from probe.series.neighbour import gradient_of

#: the rules that say "no gradient"; one in another step contradicts them
_WITHOUT_GRADIENT = ("gradient ends", "zero gradient", "unused")
#: the rules that say "no update"
_WITHOUT_UPDATE = ("no update", "not updated", "not held")


class _Seen(NamedTuple):
    """The first step in which the monitor saw what a rule denies."""

    step: int
    parameter: str


def _step_of(seen: _Seen) -> int:
    return seen.step


def beside_rows(
    findings: Sequence[HealthFinding], ranks: Sequence[RankSeries], recorded: Collection[int]
) -> list[HealthFinding]:
    """Return findings of recorded steps; one that another watched step contradicts is a note.

    Args:
        findings: those of the recorded steps.
        ranks: the rows of the monitor, of the same training.
        recorded: the recorded steps.
    """
    return [_beside(item, ranks, recorded) for item in findings]


def _beside(
    finding: HealthFinding, ranks: Sequence[RankSeries], recorded: Collection[int]
) -> HealthFinding:
    seen = [_first(finding, rank, recorded) for rank in ranks if rank.rank == finding.rank]
    known = min((item for item in seen if item is not None), key=_step_of, default=None)
    if known is None:
        return finding
    key = "health.gradient_later" if finding.rule in _WITHOUT_GRADIENT else "health.update_later"
    said = say(key, said=finding.said, name=known.parameter, step=known.step)
    return dataclasses.replace(finding, weight=NOTE, said=said)


def _first(finding: HealthFinding, rank: RankSeries, recorded: Collection[int]) -> _Seen | None:
    """Return the first other step that contradicts a finding; None without one."""
    names = dict.fromkeys(rank.names, 0.0)
    found = []
    for parameter in finding.parameters:
        series = ""
        if finding.rule in _WITHOUT_GRADIENT:
            series = gradient_of(f"{parameter}.param", names)
        elif finding.rule in _WITHOUT_UPDATE:
            series = f"{parameter}.update"
        if series not in names:
            continue
        steps, values = rank[series]
        pairs = zip(steps.tolist(), values.tolist())
        found += [
            _Seen(step, parameter) for step, size in pairs if size > 0 and step not in recorded
        ]
    return min(found, key=_step_of, default=None)
