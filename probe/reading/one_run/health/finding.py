# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A finding in one run, its weight, and the place that it names."""

from __future__ import annotations

from dataclasses import dataclass

from probe.findings.finding import Finding
from probe.findings.sentence import NOTHING, Sentence, say
from probe.store.file_names import Rank

FAULT, SUSPICIOUS, NOTE = WEIGHTS = ("fault", "suspicious", "note")
_WORDS = {FAULT: "health.fault", SUSPICIOUS: "health.suspicious", NOTE: "health.note"}


@dataclass(frozen=True)
class HealthFinding(Finding):
    """Something that one run shows by itself.

    Attributes:
        weight: "fault", "suspicious" or "note". A healthy training has no fault.
        rule: the rule's name.
        said: one sentence about it.
        name: the call or the parameter.
        step: the first step in which it was seen; None for all.
        cell: path and class of the Cell around the call.
        file, line, source: the innermost line of the user's code.
        rank: the rank.
        more: how many further places have the same fault.
    """

    weight: str
    rule: str
    said: Sentence
    name: str = ""
    step: int | None = None
    cell: str | None = None
    file: str | None = None
    line: int | None = None
    source: str | None = None
    rank: Rank = None
    more: int = 0

    @property
    def whole(self) -> Sentence:
        """Weight, sentence, Cell and line of code."""
        cell = say("health.in_cell", cell=self.cell) if self.cell else NOTHING
        code = say("health.code", file=self.file, line=self.line) if self.file else NOTHING
        more = say("health.and_more", count=self.more) if self.more else NOTHING
        weight = say(_WORDS[self.weight])
        return say("health.line", weight=weight, said=self.said, cell=cell, code=code, more=more)


def guarded(said: Sentence, step: int | None, rank: Rank) -> HealthFinding:
    """Return what a guard has told while the training ran."""
    return HealthFinding(SUSPICIOUS if said.key == "guard.shared" else FAULT, "guard", said, step=step, rank=rank)
