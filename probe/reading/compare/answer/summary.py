# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The result of a comparison, put together from the summaries of all steps and ranks, in at most 25 lines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probe.findings.sentence import ENGLISH, NOTHING, Sentence, say
from probe.reading.compare.judging.verdicts import Verdict
from probe.reading.compare.origins.across_ranks import first_origins
from probe.reading.compare.origins.across_steps import without_constants
from probe.reading.compare.origins.one_change import Named, like_once, once
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.dumps import text

_LEAST_PAIRED = 0.5
_ORIGINS = 5
_CELLS = 5
_NOTES = 3
_SIDES = 4
_RANKS = 4
_LONG = 230
_CASTS = 5
#: how values agree -> the line about all values before the first origin
_BEFORE = {
    Verdict.BITS: "compare.bits_before",
    Verdict.NUMBERS_EQUAL: "compare.numbers_before",
    Verdict.CLOSE: "compare.close_before",
}


class ComparisonResult:
    """The result of a comparison; ``Comparison`` says what its attributes are."""

    def __init__(
        self, paths: tuple[str, str], units: list[UnitSummary], alone: tuple[list[Any], list[Any]]
    ) -> None:
        self.paths = paths
        self.units = units
        self.alone = alone
        first, self.later = first_origins(units)
        self.origins = without_constants(first, units)
        #: other calls beside which no value differs, and the results of all updates agree
        self.without_effect: list[Origin] = []
        if self._are_without_effect:
            self.without_effect = [replace(item, is_harmless=True) for item in self.origins]
            self.origins = []
            self.later = []

    @property
    def _are_without_effect(self) -> bool:
        """Return whether the origins are other calls alone, which change no value and no parameter.

        Gradients that one side alone computes, for a part that no optimizer holds, are no values that both have.
        """
        kinds = {origin.kind for origin in self.origins}
        return kinds == {Kind.CALLS} and all(
            unit.origins.updates and unit.origins.settled and not unit.counts.differing_pairs
            for unit in self.units
        )

    @property
    def errors(self) -> list[str]:
        """The dumps that could not be read, each with the reason."""
        return [str(reason) for reason in self.unread]

    @property
    def unread(self) -> list[Sentence]:
        """The same as sentences."""
        return [unit.error for unit in self.units if unit.error]

    @property
    def first(self) -> Origin | None:
        """The first place where a difference begins; None where there is none."""
        return self.origins[0] if self.origins else None

    @property
    def soft(self) -> list[Origin]:
        """Changes that alone change no value: a call more, an argument. Each is there once, for all steps and ranks."""
        soft = (origin for unit in self.units for origin in unit.origins.soft)
        return once([*self.without_effect, *soft])

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict -> number of tensors."""
        return dict(sum((Counter(unit.counts.verdicts) for unit in self.units), Counter()))

    @property
    def pairs(self) -> dict[str, int]:
        """The way in which calls were paired -> their number."""
        found = dict(sum((Counter(unit.counts.pairs) for unit in self.units), Counter()))
        return {how: count for how, count in found.items() if how}

    @property
    def only_a(self) -> list[str]:
        """Calls that are only in A; of many the first of each step and rank."""
        return [name for unit in self.units for name in unit.counts.only_a]

    @property
    def only_b(self) -> list[str]:
        """Calls that are only in B."""
        return [name for unit in self.units for name in unit.counts.only_b]

    @property
    def before(self) -> str:
        """How all values before the first origin agree: "same" bits, "equal numbers" or "close"; "" for unknown."""
        first = self.first
        own = [
            unit
            for unit in self.units
            if first is not None and (unit.step, unit.rank) == (first.acts_in, first.rank)
        ]
        if first is None or not own or own[0].origins.before in (Verdict.CLOSE, ""):
            return own[0].origins.before if own else ""
        earlier = [unit for unit in self.units if (unit.step or 0) < (first.acts_in or 0)]
        if not all(unit.counts.is_exact for unit in earlier):
            return Verdict.CLOSE
        known = {verdict for unit in earlier for verdict in unit.counts.verdicts} | {
            own[0].origins.before
        }
        return next(
            (verdict for verdict in (Verdict.NUMBERS_EQUAL, Verdict.BITS) if verdict in known), ""
        )

    @property
    def unmapped(self) -> list[str]:
        """The lines of the user's map that rename no call, in no step and rank."""
        found = [unit.counts.unmapped for unit in self.units if not unit.error]
        return [line for line in found[0] if all(line in other for other in found)] if found else []

    @property
    def is_comparable(self) -> bool:
        """Whether at least half of the calls have a partner, and every dump could be read."""
        paired = sum(unit.counts.paired for unit in self.units)
        alone = [
            sum(unit.counts.only[side] - unit.counts.formed[side] for unit in self.units)
            for side in (0, 1)
        ]
        least = paired + min(alone)
        return paired > 0 and paired >= _LEAST_PAIRED * least and not self.errors

    @property
    def agrees(self) -> bool:
        """Whether nothing differs beyond tolerance."""
        last = min(
            (unit.step or 0 for unit in self.units if unit.counts.kernels), default=math.inf
        )  # then all differs
        if self.without_effect:
            return self.is_comparable
        differs = any(unit.counts.differs for unit in self.units if (unit.step or 0) <= last)
        return self.is_comparable and not self.origins and not differs

    @property
    def blind(self) -> list[UnitSummary]:
        """The steps and ranks in which no tensor has numbers on both sides: whether they agree cannot be known."""
        return [
            unit
            for unit in self.units
            if set(unit.counts.verdicts) - {Verdict.ARGUMENT} == {Verdict.UNKNOWN}
        ]

    @property
    def lacks(self) -> list[tuple[str, list[Any]]]:
        """The steps and ranks that one side lacks, by this side: whether they agree cannot be known."""
        return [(side, names) for side, names in zip("BA", self.alone) if names]

    @property
    def status(self) -> int:
        """The exit status: 0 no difference beyond tolerance, 1 differences, 2 not comparable, or it cannot be known."""
        if self.agrees:
            return 2 if self.blind or self.lacks else 0
        return 1 if self.is_comparable else 2

    def to_dict(self) -> dict[str, Any]:
        """Return the summary for JSON."""
        outside = str(say("compare.outside_cells"))
        return {
            "a": self.paths[0],
            "b": self.paths[1],
            "ok": self.status == 0,
            "status": self.status,
            "origins": [origin.to_dict() for origin in self.origins],
            "later": [origin.to_dict() for origin in self.later],
            "pairs": self.pairs,
            "verdicts": self.verdicts,
            "only_a": self.only_a,
            "only_b": self.only_b,
            "not_compared": {
                side: [str(label) for label in labels] for side, labels in zip("ab", self.alone)
            },
            "errors": self.errors,
            "unmapped": self.unmapped,
            "before_first": self.before,
            "casts": [cast for unit in self.units[:1] for cast in unit.origins.casts],
            "header": [str(line) for unit in self.units[:1] for line in unit.header],
            "units": [
                {
                    "step": unit.step,
                    "rank": unit.rank,
                    "verdicts": unit.counts.verdicts,
                    "pairs": unit.counts.pairs,
                    "cells": {name or outside: cell for name, cell in unit.counts.cells.items()},
                }
                for unit in self.units
            ],
        }


def one_line(comparison: ComparisonResult, language: str = ENGLISH) -> str:
    """Return a comparison in one short line, as pytest shows it."""
    return text.shorten(text.safe(one_sentence(comparison).text(language)), _LONG)


def one_sentence(comparison: ComparisonResult) -> Sentence:
    """Return a comparison in one sentence."""
    if comparison.agrees and comparison.blind:
        return blind_said(comparison)
    if comparison.agrees:
        return lacks_said(comparison) if comparison.lacks else say("compare.agrees")
    if not comparison.is_comparable:
        reason = comparison.unread[0] if comparison.unread else say("compare.few_pairs")
        return say("compare.not_comparable", reason=reason)
    first = comparison.first
    if first is None:
        return say("compare.differs")
    return say("compare.differs_first", kind=first.kind, where=_where(first), finding=first.said)


def summary_text(comparison: ComparisonResult, language: str = ENGLISH) -> str:
    """Return the text of a comparison: its dumps, its pairs, the origins, and the Cells that differ."""
    lines: list[Sentence | str] = [
        f"A: {comparison.paths[0]}",
        f"B: {comparison.paths[1]}",
        *_matched(comparison),
    ]
    header = [line for unit in comparison.units[:1] for line in unit.header]
    lines += [say("compare.runs_differ", difference=line) for line in header[:_NOTES]]
    if comparison.unmapped:
        more = say("compare.cut") if len(comparison.unmapped) > _SIDES else NOTHING
        lines.append(
            say(
                "compare.unmapped",
                names=say("clauses", parts=comparison.unmapped[:_SIDES]),
                more=more,
            )
        )
    notes = dict.fromkeys(
        note for unit in comparison.units for note in (*unit.notes, unit.error) if note
    )
    lines += [say("compare.note", note=note) for note in list(notes)[:_NOTES]]
    for casts in filter(None, (unit.origins.casts for unit in comparison.units[:1])):
        lines += [
            say("compare.casts", count=len(casts)),
            *(say("compare.cast", **cast) for cast in casts[:_CASTS]),
        ]
    if comparison.agrees and comparison.blind:
        lines += [blind_said(comparison), *_harmless(comparison, language)]
    elif comparison.agrees and comparison.lacks:
        lines += [lacks_said(comparison), *_harmless(comparison, language)]
    elif comparison.agrees:
        lines += [say("compare.no_difference"), *_harmless(comparison, language)]
    elif not comparison.is_comparable:
        lines.append(one_line(comparison, language))
    else:
        # changes that alone change no value may be what was meant, beside the origin
        also = [
            text.shorten(origin.said.text(language), 200) for origin in harmless(comparison)[:1]
        ]
        lines += [
            *_origins(comparison, language),
            *(say("compare.also_other", finding=found) for found in also),
        ]
        lines += _cells(comparison, language)
    return "\n".join(text.safe(said(line, language)) for line in lines[:25])


def blind_said(comparison: ComparisonResult) -> Sentence:
    """Return that steps and ranks have no numbers to compare."""
    places = [
        say("compare.step", step=unit.step) for unit in comparison.blind if unit.step is not None
    ]
    return say("compare.blind", places=list(dict.fromkeys(places)) or say("compare.all_steps"))


def lacks_said(comparison: ComparisonResult) -> Sentence:
    """Return that one side lacks steps or ranks of the other."""
    sides = []
    for side, names in comparison.lacks:
        more = say("compare.cut") if len(names) > _SIDES else NOTHING
        shown = say("clauses", parts=names[:_SIDES])
        sides.append(say("compare.side_lacks", side=side, names=shown, more=more))
    return say("compare.lacks", sides=say("clauses", parts=sides))


def said(line: Sentence | str, language: str) -> str:
    """Return a line as text; one that is text already stays as it is."""
    return line.text(language) if isinstance(line, Sentence) else line


def _matched(comparison: ComparisonResult) -> list[Sentence]:
    pairs = comparison.pairs
    counts = [sum(unit.counts.only[side] for unit in comparison.units) for side in (0, 1)]
    how = _counted(dict(sorted(pairs.items(), key=lambda item: -item[1])))
    facts = {
        "dumps": len(comparison.units),
        "pairs": sum(pairs.values()),
        "only_a": counts[0],
        "only_b": counts[1],
    }
    verdicts = {
        verdict: count
        for verdict, count in comparison.verdicts.items()
        if verdict != Verdict.ARGUMENT
    }
    lines = [
        say("compare.matched", how=how, **facts),
        say("compare.tensors", verdicts=_counted(verdicts)),
    ]
    for side, names in zip("AB", comparison.alone):
        if names:
            more = say("compare.cut") if len(names) > _SIDES else NOTHING
            labels = say("clauses", parts=names[:_SIDES])
            lines.append(say("compare.alone", side=side, names=labels, more=more))
    return lines


def _counted(counts: Mapping[str, int]) -> Sentence | list[Sentence]:
    found = [say("compare.count", name=name, count=count) for name, count in counts.items()]
    return found or say("compare.none")


def _origins(comparison: ComparisonResult, language: str) -> list[Sentence | str]:
    lines: list[Sentence | str] = []
    for place, origin in enumerate(comparison.origins[:_ORIGINS]):
        title = say("compare.independent") if place else say("compare.first")
        lines.append(say("compare.origin", title=title, where=_where(origin), kind=origin.kind))
        lines.append(f"    {text.shorten(origin.said.text(language), 400)}")
        if origin.file:
            lines.append(f"    {origin.file}:{origin.line}: {origin.source}")
        if not place and comparison.before:
            lines.append(f"    {say(_BEFORE[comparison.before]).text(language)}")
    more = len(comparison.origins) - _ORIGINS
    if more > 0:
        lines.append(say("compare.and_more", count=more))
    named = Named(comparison.origins)
    steps = {origin.step for origin in (*comparison.origins[:1], *comparison.later)}
    later = [origin for origin in comparison.later if not named.holds(origin)]
    names = [origin.name for origin in later]
    if len(steps) > 1:
        names = [say("compare.of_step", name=it.name, step=it.step).text(language) for it in later]
    if names:
        lines.append(
            say("compare.suspicious", names=text.shorten(", ".join(dict.fromkeys(names)), 200))
        )
    return lines


def harmless(comparison: ComparisonResult) -> list[Origin]:
    """Return the changes that are proved to change no value, without those of calls that an origin names."""
    named = Named(comparison.origins)
    proven = [origin for origin in comparison.soft if origin.is_harmless]
    return [origin for origin in like_once(proven) if not named.holds(origin)]


def _where(origin: Origin) -> list[Sentence | str]:
    parts: list[Sentence | str] = (
        [] if origin.step is None else [say("compare.step", step=origin.step)]
    )
    if origin.rank is not None and not origin.ranks:
        parts.append(say("compare.rank", rank=origin.rank))
    elif origin.rank is not None:
        ranks = [origin.rank, *origin.ranks]
        parts.append(say("compare.ranks", count=len(ranks), ranks=ranks[:_RANKS]))
    return [
        *parts,
        say("compare.in_cell", name=origin.name, cell=origin.cell) if origin.cell else origin.name,
    ]


def _cells(comparison: ComparisonResult, language: str) -> list[Sentence | str]:
    cells: dict[str, tuple[int, float]] = {}
    for unit in comparison.units:
        for name, (count, worst) in unit.counts.cells.items():
            before = cells.get(name, (0, 0.0))
            cells[name] = before[0] + count, max(before[1], worst)
    if not cells:
        return []
    head = [
        say(key).text(language)
        for key in ("compare.cells", "compare.cell_tensors", "compare.cell_rel_l2")
    ]
    outside = say("compare.outside_cells").text(language)
    found = cells.items()
    shown = [
        [text.shorten(text.safe(name or outside), 60), str(n), f"{worst:.2g}"]
        for name, (n, worst) in found
    ]
    more = len(shown) - _CELLS
    lines: list[Sentence | str] = [*text.columns([head, *shown[:_CELLS]]).split("\n")]
    return [*lines, say("compare.more_cells", count=more)] if more > 0 else lines


def _harmless(comparison: ComparisonResult, language: str) -> list[Sentence]:
    soft = like_once(comparison.soft)
    more = len(soft) - _NOTES
    lines = []
    for origin in soft[:_NOTES]:
        finding = text.shorten(origin.said.text(language), 200)
        is_proven = origin.is_harmless
        lines.append(
            say("compare.harmless", finding=finding)
            if is_proven
            else say("compare.changed_too", finding=finding)
        )
    return [*lines, say("compare.changed_more", count=more)] if more > 0 else lines
