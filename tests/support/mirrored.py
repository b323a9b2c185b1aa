# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""What two comparisons of one pair of dumps, in both orders, have to say alike."""

from __future__ import annotations

from typing import Any, NamedTuple

from probe.reading.compare.answer.summary import harmless
from probe.reading.dumps.entry_name import parse

_COMMUTATIVE = ("add", "mul", "maximum", "minimum", "eq", "ne")


class Place(NamedTuple):
    """One finding, told without which side is A."""

    kind: str
    step: Any
    rank: str
    calls: tuple[str, ...]  # the call on each side that has it
    place: str
    why: str
    words: str  # the key of its sentence
    more: int  # how many further calls it stands for
    rel_l2: Any


class Facts(NamedTuple):
    """The facts of a comparison that its order must not change."""

    status: int
    origins: tuple[Place, ...]
    later: tuple[Place, ...]
    changes: tuple[Place, ...]  # those that are told as harmless, or may be
    proven: int
    verdicts: tuple[tuple[str, int], ...]
    alone: tuple[int, int]  # how many calls either side alone has, the lesser number first
    before: str

    def shown(self) -> dict[str, Any]:
        """Return them for a line of JSON."""
        return self._asdict()


def facts_of(comparison: Any) -> Facts:
    """Return the facts of a comparison."""
    only = [sum(unit.counts.only[side] for unit in comparison.units) for side in (0, 1)]
    return Facts(
        comparison.status,
        tuple(map(_place, comparison.origins)),
        tuple(map(_place, comparison.later)),
        tuple(map(_place, comparison.soft)),
        len(harmless(comparison)),
        tuple(sorted(comparison.verdicts.items())),
        (min(only), max(only)),
        comparison.before,
    )


def _place(origin: Any) -> Place:
    calls = tuple(sorted(filter(None, origin.site.calls))) or (origin.name,)
    parts = origin.said.facts.get("parts", ())
    words = " ".join(part.key for part in parts) if parts else origin.said.key
    place = origin.place
    if any(parse(call).api.strip("_") in _COMMUTATIVE for call in calls):
        # an operand is told where it stands on its own side, which may be the other place there
        place = place.partition(".")[0]
    return Place(
        origin.kind, origin.step, str(origin.rank), calls, place, origin.why, words,
        len(origin.more), origin.rel_l2,
    )  # fmt: skip


def what_differs(forth: Facts, back: Facts) -> list[str]:
    """Return the names of the facts that differ, and for lists of findings also which part of them does."""
    found = [
        name
        for name, one, other in zip(Facts._fields, forth, back)
        if one != other and name not in _LISTS
    ]
    for name in _LISTS:
        found += _parts(name, getattr(forth, name), getattr(back, name))
    return found


_LISTS = ("origins", "later", "changes")


def _parts(name: str, one: tuple[Place, ...], other: tuple[Place, ...]) -> list[str]:
    if len(one) != len(other):
        return [f"{name}: count"]
    return [
        f"{name}: {part}"
        for number, part in enumerate(Place._fields)
        if [place[number] for place in one] != [place[number] for place in other]
    ]
