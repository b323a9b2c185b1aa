# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two frameworks whose outputs differ: by name, size and place between the pairs found so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping

from probe.reading.compare.pairing.sequence import Pairs, Places, match_values

#: calls between two pairs: up to so many combinations are tried
_FEW = 40_000
#: the cost of a call of A without a partner; a pair costs at most 2.0
_ALONE = 3.0

#: how little two places fit, up to 2.0; inf where they cannot be one
Cost = Callable[[int, int], float]
#: side, place -> the name and size of a call
Key = Callable[[int, int], Hashable]


def match_between(
    a: Places, b: Places, b_of: Mapping[int, int], key: Key, cost: Cost
) -> Iterator[tuple[int, int]]:
    """Yield pairs of places of calls, in order, between the pairs found so far, ``b_of``.

    The keys come first where there are many calls.

    >>> costs = {(1, 1): 0.5, (1, 2): 0.1}
    >>> list(match_between([0, 1, 2], [0, 1, 2, 3], {0: 0, 2: 3}, lambda *_: 0, lambda i, j: costs[i, j]))
    [(1, 2)]
    """
    for left, right in _gaps(a, b, b_of):
        if _are_few(left, right):
            yield from _cheapest(left, right, cost)
            continue
        keys_a = {place: key(0, place) for place in left}
        keys_b = {place: key(1, place) for place in right}
        named = dict(match_values(keys_a, keys_b))
        yield from named.items()
        for inner_left, inner_right in _gaps(left, right, named):
            if _are_few(inner_left, inner_right):
                yield from _cheapest(inner_left, inner_right, cost)


def _are_few(a: Places, b: Places) -> bool:
    return len(a) * len(b) <= _FEW


def _gaps(a: Places, b: Places, b_of: Mapping[int, int]) -> Iterator[tuple[Places, Places]]:
    """Yield the calls between neighbouring pairs that have no partner, of A and of B."""
    index = {place: number for number, place in enumerate(b)}
    taken = set(b_of.values())
    waiting: Places = []
    begin = 0
    for place in (*a, None):
        if place is not None and place not in b_of:
            waiting.append(place)
            continue
        end = len(b) if place is None else index.get(b_of[place])
        if end is not None and end >= begin:
            free = [other for other in b[begin:end] if other not in taken]
            if waiting and free:
                yield waiting, free
            waiting = []
            begin = end + 1


def _cheapest(a: Places, b: Places, cost: Cost) -> Pairs:
    """Return the pairs in order whose costs are least together."""
    best = _costs(a, b, cost)
    pairs: Pairs = []
    i = len(a)
    j = len(b)
    while i and j:
        if best[i][j] == best[i][j - 1]:
            j -= 1
        elif best[i][j] == best[i - 1][j] + _ALONE:
            i -= 1
        else:
            i -= 1
            j -= 1
            pairs.append((a[i], b[j]))
    pairs.reverse()
    return [(left, right) for left, right in pairs if cost(left, right) < math.inf]


def _costs(a: Places, b: Places, cost: Cost) -> list[list[float]]:
    """Return the least cost of pairing the first i calls of A with the first j of B, for each i and j."""
    above = [0.0] * (len(b) + 1)
    best = [above]
    for place in a:
        row = [above[0] + _ALONE]
        for j, other in enumerate(b):
            paired = above[j] + cost(place, other)
            alone = above[j + 1] + _ALONE
            row.append(min(alone, row[j], paired))
        best.append(row)
        above = row
    return best
