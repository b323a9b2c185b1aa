# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Links origins with the step before: values that one step leaves to the next, such as moments that the user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.naming import ranges
from probe.reading.check.snapshot import read_snapshots
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.origins.unit_summary import UnitSummary
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD, parse
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import tensors_in

WHY = "the two sides take it from two calls of the step before"
CONSTANT = "a constant differs"
#: a value that is the same in so many steps is a constant
_SAME = 2
#: the sentences that call a value the batch
_BATCHES = ("compare.batch", "compare.other_batch")
#: content that more calls of a step have made is no evidence
_COMMON = 8


def given(slot: Slot | None) -> tuple[Any, ...]:
    """Return the content of a value in A and in B; a constant tells nothing of who made it."""
    if slot is None or not slot.are_tensors:
        return ()
    sides = (slot.a, slot.b)
    return tuple(None if is_constant(side) else content_key(side) for side in sides)


def contents(slot: Slot | None) -> tuple[Any, ...]:
    """Return the content of a value in A and in B."""
    if slot is None or not slot.are_tensors:
        return ()
    return content_key(slot.a), content_key(slot.b)


def without_constants(origins: Sequence[Origin], units: Sequence[UnitSummary]) -> list[Origin]:
    """Return origins; a value that is the same in several steps of A is a constant, and no batch.

    Values that enter the model or the loss stay the batch, as a training may have the same one in each step.
    """
    return [_constant(origin, units) or origin for origin in origins]


def _constant(origin: Origin, units: Sequence[UnitSummary]) -> Origin | None:
    """Return the same origin as a constant; None where the value may be the batch."""
    outside, parts = _first_part(origin.said)
    if not any(origin.first_value) or outside.key not in _BATCHES:
        return None
    steps = {unit.step for unit in units if unit.step is not None and _has_value(unit, origin)}
    if len(steps) < _SAME:
        return None
    facts = {key: outside.facts[key] for key in ("name", "place", "numbers")}
    said = say("compare.constant_differs", **facts, steps=", ".join(ranges(sorted(steps))))
    return replace(origin, kind=Kind.OUTSIDE, said=clauses(said, *parts), why=CONSTANT)


def _has_value(unit: UnitSummary, origin: Origin) -> bool:
    """Return whether a step of the same rank has a value at the same place, and it is the same in A."""
    return any(
        (other.name, other.place, other.rank) == (origin.name, origin.place, origin.rank)
        and other.first_value[:1] == origin.first_value[:1]
        for other in (*unit.origins.first, *unit.origins.later)
    )


def link_steps(
    units: Sequence[UnitSummary], pairs: Sequence[tuple[DumpFolder, DumpFolder]]
) -> None:
    """Name, in the origins of units, the calls of the step before that made a value which no call of its own made."""
    before: dict[Any, int] = {}  # tree and rank -> the place of its step before
    differing: set[Any] = (
        set()
    )  # trees and ranks of which a step differs: later ones follow from it
    for place, (unit, (_, folder)) in enumerate(zip(units, pairs)):
        key = (folder.tree, folder.rank)
        if key in before and key not in differing:
            last = before[key]
            _link(unit, units[last], pairs[last])
        if unit.origins.first or unit.counts.differs:
            differing.add(key)
        before[key] = place


def _link(unit: UnitSummary, last: UnitSummary, pair: tuple[DumpFolder, DumpFolder]) -> None:
    """Link a step with the one before, ``last``, and its two dumps."""
    first = unit.origins.first
    outside = [origin for origin in first if any(origin.given)]
    if outside:
        unit.origins = unit.origins.changed(_linked(outside, pair))
    is_parameter = any(origin.kind == Kind.PARAMETER for origin in first)
    if is_parameter and not last.origins.settled and _are_one_after_update(pair):
        last.origins = last.origins._replace(settled=True)


def _are_one_after_update(pair: tuple[DumpFolder, DumpFolder]) -> bool:
    """Return whether run.jsonl of both has the checksums of the parameters after the updates, and they are equal."""
    folder_a, folder_b = pair
    try:
        checksums_a = _checksums(folder_a)
        checksums_b = _checksums(folder_b)
    except UsageError:
        return False
    return bool(checksums_a) and checksums_a == checksums_b


def _checksums(folder: DumpFolder) -> dict[str, Any] | None:
    """Return the checksums of the parameters after the updates of a step; None where there are none."""
    snapshot = read_snapshots(folder.path)[0]
    return snapshot.updates.get(folder.step or 0)


def _linked(origins: Sequence[Origin], pair: tuple[DumpFolder, DumpFolder]) -> dict[Origin, Origin]:
    """Return, for origins whose value the step before made by two calls, the same origin with these calls."""
    folder_a, folder_b = pair
    contents = [_Contents(*origin.given) for origin in origins]
    try:
        made_a = _made(folder_a, {content.a for content in contents})
        made_b = _made(folder_b, {content.b for content in contents})
    except UsageError:
        return {}  # the unit of that step has told it
    linked: dict[Origin, Origin] = {}
    for origin, content in zip(origins, contents):
        makers_a = made_a.get(content.a, [])
        makers_b = made_b.get(content.b, [])
        is_one = makers_a[-1:] == makers_b[-1:]
        if is_one or len(makers_a) > _COMMON or len(makers_b) > _COMMON:
            continue
        left = _maker(content.a, makers_a, folder_b.step)
        right = _maker(content.b, makers_b, folder_b.step)
        outside, parts = _first_part(origin.said)
        numbers = outside.facts.get("numbers", NOTHING)
        facts = {key: outside.facts[key] for key in ("name", "place")}
        link = say("compare.step_link", **facts, numbers=numbers, left=left, right=right)
        said = clauses(link, *parts)
        linked[origin] = replace(origin, kind=Kind.WIRING, said=said, why=WHY)
    return linked


def _first_part(said: Sentence) -> tuple[Sentence, list[Sentence]]:
    """Return the first sentence of joined ones, and those behind it."""
    behind: list[Sentence] = []
    while "parts" in said.facts:
        said, *more = said.facts["parts"]
        behind = [*more, *behind]
    return said, behind


class _Contents(NamedTuple):
    """The content of a value in A and in B; None for a constant."""

    a: Any
    b: Any


def _maker(content: Any, names: Sequence[str], step: int | None) -> Sentence:
    if content is None:
        return say("compare.constant")
    if not names:
        return say("compare.no_step_maker", step=step)
    return say("compare.step_maker", name=names[-1], step=step)


def _made(folder: DumpFolder, wanted: set[Any]) -> dict[Any, list[str]]:
    """Return the contents that are wanted -> the calls of a step that made them."""
    dump = Dump(folder)
    made: dict[Any, list[str]] = {}
    try:
        for name, entry in dump.data.items():
            if parse(name).direction != FORWARD:
                continue
            for record in tensors_in(entry, "output"):
                content = content_key(record)
                if content is not None and content in wanted:
                    made.setdefault(content, []).append(name)
        return made
    finally:
        dump.release()
