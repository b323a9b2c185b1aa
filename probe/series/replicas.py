# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Decides which ranks must hold the same value of a parameter, by evidence: for dumps and for the monitor.

Ranks may hold replicas of a parameter, as in data parallelism, or parts of it, as in tensor parallelism. Two ranks
whose values differ have a fault in the first case, and none in the second. Without evidence it cannot be known.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from probe.store.file_names import Rank

#: the reasons why ranks must hold the same value, the best first
PLACED, REDUCED, GRADIENT, BEFORE, MOST = REASONS = (
    "placed",
    "reduced",
    "gradient",
    "before",
    "most",
)


class Held(NamedTuple):
    """A parameter on one rank, as far as it is known."""

    value: Hashable  # a key of its content; None where it is not known
    shape: Hashable = None
    #: whether the value tells something: a constant, such as zeros, is equal on all ranks by itself
    is_telling: bool = False
    gradient: Hashable = (
        None  # a key of its gradient that enters an optimizer; None for none, and for a constant
    )
    #: the ranks over which a collective reduces its gradient in its own shape, as "0,1" or "world"; "" for none
    reduced: str = ""
    is_gathered: bool = False  # whether a collective gathers it: then the rank holds a part
    place: Hashable = (
        None  # which part the rank holds, by its recorded placements; None where there are none
    )


class Replicas(NamedTuple):
    """Ranks that must hold the same value."""

    groups: list[list[Rank]]  # the ranks by their values, the largest group first
    why: str  # one of ``REASONS``

    @property
    def ranks(self) -> list[Rank]:
        """All ranks."""
        return [rank for group in self.groups for rank in group]


@dataclass
class Judged:
    """The decision about one parameter on several ranks."""

    replicas: list[Replicas] = field(default_factory=list)
    is_split: bool = (
        False  # whether ranks hold other values, and evidence says that these are parts
    )
    #: the ranks by their values, where it cannot be known whether they hold replicas or parts; [] where it is known
    unknown: list[list[Rank]] = field(default_factory=list)

    @property
    def apart(self) -> list[Replicas]:
        """The ranks that must hold the same value, and do not."""
        return [item for item in self.replicas if len(item.groups) > 1]


def groups_of(values: Mapping[Rank, Hashable]) -> list[list[Rank]]:
    """Return the ranks that have one value each, the largest group first.

    >>> groups_of({0: "a", 1: "b", 2: "b"})
    [[1, 2], [0]]
    """
    found: dict[Hashable, list[Rank]] = {}
    for rank, value in values.items():
        found.setdefault(value, []).append(rank)
    return sorted(found.values(), key=len, reverse=True)


def has_majority(groups: Sequence[Sequence[Rank]]) -> bool:
    """Return whether the first, the largest, of several groups is larger than each other one.

    >>> has_majority([[0, 1], [2]]), has_majority([[0], [1]]), has_majority([[0, 1], [2, 3]])
    (True, False, False)
    """
    return len(groups[0]) > max(map(len, groups[1:]), default=0)


def judge(held: Mapping[Rank, Held], before: Mapping[Rank, Hashable], are_parts: bool) -> Judged:
    """Decide about one parameter.

    Args:
        held: the parameter on each rank that has it.
        before: telling values in an earlier step, of the ranks that are known to be replicas of each other.
        are_parts: whether the ranks split a model, by evidence that is no evidence about this parameter alone.
    """
    known = {rank: item for rank, item in held.items() if item.value is not None}
    values = {rank: item.value for rank, item in known.items()}
    groups = groups_of(values)
    if len(groups) < 2:
        return Judged([Replicas(groups, "")] if len(known) > 1 else [])
    sets = _linked(known, before)
    is_alone = all(len(ranks) == 1 for ranks, _ in sets)
    if is_alone and _is_most(groups, known):
        return Judged([Replicas(groups, MOST)])
    replicas = [
        Replicas(groups_of({rank: values[rank] for rank in ranks}), why)
        for ranks, why in sets
        if len(ranks) > 1
    ]
    judged = Judged(replicas)
    firsts = [known[ranks[0]] for ranks, _ in sets]
    if len({item.value for item in firsts}) > 1:
        judged.is_split = are_parts or _are_parts(firsts)
        if not judged.is_split:
            judged.unknown = groups
    return judged


def _linked(
    known: Mapping[Rank, Held], before: Mapping[Rank, Hashable]
) -> list[tuple[list[Rank], str]]:
    """Return sets of ranks that evidence links, each with the best reason; a rank without a link is alone."""
    owner: dict[tuple[str, Hashable], Rank] = {}
    above: dict[Rank, Rank] = {rank: rank for rank in known}
    reasons: dict[Rank, set[str]] = {rank: set() for rank in known}

    def top(rank: Rank) -> Rank:
        while above[rank] != rank:
            above[rank] = above[above[rank]]
            rank = above[rank]
        return rank

    for rank, item in known.items():
        for why, key in _evidence(item, before.get(rank)):
            first = owner.setdefault((why, key), rank)
            if first != rank:
                above[top(rank)] = top(first)
                reasons[rank].add(why)
    sets: dict[Rank, list[Rank]] = {}
    for rank in known:
        sets.setdefault(top(rank), []).append(rank)
    found = []
    for ranks in sets.values():
        whys = {why for rank in ranks for why in reasons[rank]}
        found.append((ranks, min(whys, key=REASONS.index, default="")))
    return found


def _evidence(item: Held, before: Hashable) -> list[tuple[str, Hashable]]:
    """Return (reason, key): ranks with an equal pair hold replicas. Placements are an answer that ends the question."""
    if item.place is not None:
        return [(PLACED, (item.place, item.shape))]
    found: list[tuple[str, Hashable]] = []
    if item.reduced:
        found.append((REDUCED, (item.reduced, item.shape)))
    if item.gradient is not None:
        found.append((GRADIENT, item.gradient))
    if before is not None:
        found.append((BEFORE, before))
    return found


def _is_most(groups: list[list[Rank]], known: Mapping[Rank, Held]) -> bool:
    """Return whether most ranks share a telling value: no layout gives some ranks a part of their own alone."""
    is_telling = known[groups[0][0]].is_telling
    shapes = {item.shape for item in known.values()}
    return is_telling and len(shapes) == 1 and has_majority(groups)


def _are_parts(firsts: Sequence[Held]) -> bool:
    is_placed = all(item.place is not None for item in firsts) and len(
        {item.place for item in firsts}
    ) == len(firsts)
    is_other_shape = len({item.shape for item in firsts}) == len(firsts)
    return is_placed or is_other_shape or all(item.is_gathered for item in firsts)
