# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Values that one step leaves to the next, such as the moments of an optimizer that the user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probe.errors import UsageError
from probe.findings.sentence import Sentence, clauses, say
from probe.reading.check.snapshot import read_snapshots
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.origins.across_ranks import UnitSummary
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD, parse
from probe.reading.dumps.flow import content_key, is_constant
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import is_tensor, tensors_in

WHY = "the two sides take it from two calls of the step before"
#: content that more calls of a step have made is no evidence
_COMMON = 8


def given(slot: Slot | None) -> tuple[Any, ...]:
    """Return the content of a value in A and in B; a constant tells nothing of who made it."""
    if slot is None or not is_tensor(slot.a) or not is_tensor(slot.b):
        return ()
    return tuple(None if is_constant(side) else content_key(side) for side in (slot.a, slot.b))


def link_steps(units: Sequence[UnitSummary], pairs: Sequence[tuple[DumpFolder, DumpFolder]]) -> None:
    """Name the calls of the step before that made a value which no call of its own step made.

    The sentences of the origins of the units are changed; each unit is of one pair of folders.
    """
    before: dict[Any, int] = {}
    differing: set[Any] = set()
    for place, (unit, (_, folder)) in enumerate(zip(units, pairs)):
        key = folder.tree, folder.rank
        outside = [origin for origin in unit.origins.first if origin.kind == Kind.OUTSIDE and any(origin.given)]
        if key in before and key not in differing:
            if outside:
                _name_makers(outside, pairs[before[key]])
            last = units[before[key]]
            is_parameter = any(origin.kind == Kind.PARAMETER for origin in unit.origins.first)
            if is_parameter and not last.origins.settled and _are_one_after_update(pairs[before[key]]):
                last.origins = last.origins._replace(settled=True)
        if unit.origins.first or unit.counts.differs:
            differing.add(key)  # what comes later follows from it
        before[key] = place


def _are_one_after_update(pair: tuple[DumpFolder, DumpFolder]) -> bool:
    """Return whether run.jsonl of both has the checksums of the parameters after the updates, and they are equal."""
    try:
        found = [read_snapshots(folder.path)[0].updates.get(folder.step or 0) for folder in pair]
    except UsageError:
        return False
    return bool(found[0]) and found[0] == found[1]


def _name_makers(origins: Sequence[Origin], pair: tuple[DumpFolder, DumpFolder]) -> None:
    try:
        made = [_made(folder, {origin.given[side] for origin in origins}) for side, folder in enumerate(pair)]
    except UsageError:
        return  # the unit of that step has told it
    for origin in origins:
        makers = [made[side].get(origin.given[side], []) for side in (0, 1)]
        if makers[0][-1:] == makers[1][-1:] or max(map(len, makers)) > _COMMON:
            continue
        left, right = (_maker(given, names, pair[1].step) for given, names in zip(origin.given, makers))
        parts = [origin.said] if origin.said.key == "compare.outside" else origin.said.facts["parts"]
        facts = {key: parts[0].facts[key] for key in ("name", "place", "numbers")}
        origin.kind, origin.why = Kind.WIRING, WHY
        origin.said = clauses(say("compare.step_link", **facts, left=left, right=right), *parts[1:])


def _maker(given: Any, names: Sequence[str], step: int | None) -> Sentence:
    if given is None:
        return say("compare.constant")
    return say("compare.step_maker", name=names[-1], step=step) if names else say("compare.no_step_maker", step=step)


def _made(folder: DumpFolder, wanted: set[Any]) -> dict[Any, list[str]]:
    """Return content -> the calls of a step that made it."""
    dump, found = Dump(folder), dict[Any, list[str]]()
    try:
        for name, entry in dump.data.items():
            for record in tensors_in(entry, "output") if parse(name).direction == FORWARD else ():
                key = content_key(record)
                if key is not None and key in wanted:
                    found.setdefault(key, []).append(name)
    finally:
        dump.release()
    return found
