# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""A cause: what a reader has named, its line of code, and how strong the evidence for it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import Finding, Sentence, say
from probe.reading.compare.answer.summary import ComparisonResult
from probe.reading.compare.judging.verdicts import Verdict
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.one_run.health.rows import SeriesFinding
from probe.reading.one_run.health.step import HealthFinding
from probe.reading.one_run.rank_checks import RankFinding
from probe.reading.one_run.trend import TrendFinding
from probe.store.file_names import Rank

#: how strong the evidence for a cause is, the strongest first; the first two are proofs
EXPERIMENT, BITS, RULE, GUESS = STRENGTHS = ("experiment", "bits", "rule", "guess")
#: the sentence of each strength
SAID_OF_STRENGTH = {
    EXPERIMENT: "find.experiment",
    BITS: "find.bits",
    RULE: "find.rule",
    GUESS: "find.guess",
}
#: the readers that name causes, as words of the JSON answer
COMPARED = "compare"
NONFINITE = "nan"
HEALTH = "check"
RANKS = "ranks"
WATCHED = "watch"
REPLAYED = "replay"
#: the search itself names a line of code
LINES = "find"
#: the places of states and outputs of a call
_FOLLOWING = ("parameters.", "output.")
#: the rule of a series that names a thing which can be changed: a number of the optimizer
_SETTING = "setting"


@dataclass(frozen=True)
class Cause(Finding):
    """The heaviest finding of all readers, if it names a thing that can be changed.

    Attributes:
        said: the finding in one sentence.
        reader: the command that names it: "compare", "nan", "check", "ranks", "watch", "replay" or "find".
        kind: the kind of the difference, or the rule.
        strength: one of ``STRENGTHS``.
        name: the call or the parameter.
        place: the place in the call, such as "input.0".
        cell: path and class of the Cell around it.
        step: the step; None where it holds for all.
        acts_in: the first step in which a value differs by it; None where it has no step.
        is_golden: whether the line is one of the golden program, as the other one lacks it.
        rank: the rank.
        file: the innermost file of the training's own code; None without a stack.
        line: the number of its line.
        source: the text of the line.
    """

    said: Sentence
    reader: str
    kind: str
    strength: str = RULE
    name: str = ""
    place: str = ""
    cell: str | None = None
    step: int | None = None
    rank: Rank = None
    file: str | None = None
    line: int | None = None
    source: str | None = None
    acts_in: int | None = None
    is_golden: bool = False

    @property
    def is_proved(self) -> bool:
        """Whether an experiment or equal bits prove it."""
        return self.strength in (EXPERIMENT, BITS)

    @property
    def call(self) -> str:
        """The call, without "forward" or "backward" at its end."""
        return self.name.partition(".forward")[0].partition(".backward")[0]


def cause_of(finding: Finding | None, result: ComparisonResult | None) -> Cause | None:
    """Return the heaviest finding as a cause.

    Args:
        finding: the heaviest finding.
        result: the comparison of two runs, whose equal bits may prove it.

    Returns:
        The cause. None for a rule that holds in a series: it tells a symptom, unless it looks at settings. None for
        a difference that was made in steps that are not compared.
    """
    if isinstance(finding, Origin):
        if finding.is_uncompared:
            return None
        return _of_origin(finding, result)
    if isinstance(finding, HealthFinding) and not isinstance(finding, SeriesFinding):
        return Cause(
            finding.said,
            HEALTH,
            finding.rule,
            name=finding.name,
            cell=finding.cell,
            step=finding.step,
            rank=finding.rank,
            file=finding.file,
            line=finding.line,
            source=finding.source,
        )
    if isinstance(finding, RankFinding):
        rank = finding.ranks[0] if len(finding.ranks) == 1 else None
        return Cause(
            finding.said, RANKS, finding.kind, name=finding.name, step=finding.step, rank=rank
        )
    if isinstance(finding, TrendFinding) and finding.rule == _SETTING:
        said = say("find.setting", name=finding.name, said=finding.said)
        return Cause(
            said, WATCHED, finding.rule, name=finding.name, step=finding.step, rank=finding.rank
        )
    return None


def _of_origin(origin: Origin, result: ComparisonResult | None) -> Cause:
    is_difference = result is not None and result.first is origin
    strength = RULE
    if result is not None and is_difference:
        strength = _strength_of_difference(origin, result)
    where: dict[str, Any] = {
        "name": origin.name,
        "place": origin.place,
        "cell": origin.cell,
        "step": origin.step,
        "rank": origin.rank,
        "acts_in": origin.acts_in,
    }
    code: dict[str, Any] = {"file": origin.file, "line": origin.line, "source": origin.source}
    code["is_golden"] = is_difference and _is_of_golden(origin)
    reader = COMPARED if is_difference else NONFINITE
    return Cause(origin.said, reader, origin.kind, strength, **where, **code)


def _is_of_golden(origin: Origin) -> bool:
    """Return whether the line of a difference is one of A, and B has no line at its place."""
    frame_a, frame_b = origin.code.frames
    return frame_a is not None and frame_b is None and origin.code.frame == frame_a


def _is_of(other: Origin, origin: Origin) -> bool:
    """Return whether a difference is the origin, or follows from it in its call.

    An update with another number has other states and outputs too.
    """
    follows = other.place.startswith(_FOLLOWING)
    return other is origin or (follows and (other.name, other.rank) == (origin.name, origin.rank))


def _strength_of_difference(origin: Origin, result: ComparisonResult) -> str:
    """Return whether equal bits prove a difference.

    All values before it have equal bits, and no other difference of this step is independent of it. A random call
    is another one each time, and a value from outside has an unknown maker: these stay a rule.
    """
    is_alone = not any(
        other.acts_in == origin.acts_in and not _is_of(other, origin) for other in result.origins
    )
    is_known = origin.kind not in (Kind.RANDOM, Kind.OUTSIDE)
    return BITS if is_alone and is_known and result.before == Verdict.BITS else RULE
