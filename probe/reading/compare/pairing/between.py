# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two frameworks whose outputs differ: by name, size and place between the pairs found so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from probe.reading.compare.pairing.sequence import match

#: calls between two pairs: up to so many combinations are tried
_FEW = 40_000
#: the cost of a call of A without a partner; a pair costs at most 2.0
_ALONE = 3.0

Run = Sequence[int]


def match_between(
    a: Run, b: Run, b_of: Mapping[int, int], key: Callable[[int, int], Hashable], cost: Callable[[int, int], float]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of places, in order, between the pairs found so far.

    Args:
        a: the places of the calls of A, in order.
        b: the places of the calls of B, in order.
        b_of: the pairs so far.
        key: gives for a side and a place the name and size of a call. They come first where there are many calls.
        cost: gives for two places how little they fit, up to 2.0; inf where they cannot be one.

    >>> costs = {(1, 1): 0.5, (1, 2): 0.1}
    >>> list(match_between([0, 1, 2], [0, 1, 2, 3], {0: 0, 2: 3}, lambda *_: 0, lambda i, j: costs[i, j]))
    [(1, 2)]
    """
    for left, right in _gaps(a, b, b_of):
        if len(left) * len(right) <= _FEW:
            yield from _cheapest(left, right, cost)
            continue
        found = match([key(0, place) for place in left], [key(1, place) for place in right])
        named = {left[i]: right[j] for i, j in found}
        yield from named.items()
        for inner_left, inner_right in _gaps(left, right, named):
            if len(inner_left) * len(inner_right) <= _FEW:
                yield from _cheapest(inner_left, inner_right, cost)


def _gaps(a: Run, b: Run, b_of: Mapping[int, int]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the calls between neighbouring pairs that have no partner, of A and of B."""
    index = {place: number for number, place in enumerate(b)}
    taken = set(b_of.values())
    waiting: list[int] = []
    begin = 0
    for place in (*a, None):
        end = len(b) if place is None else index.get(b_of.get(place, -1))
        if place is not None and place not in b_of:
            waiting.append(place)
        elif end is not None and end >= begin:
            free = [other for other in b[begin:end] if other not in taken] if waiting else []
            if free:
                yield waiting, free
            waiting, begin = [], end + 1


def _cheapest(a: Run, b: Run, cost: Callable[[int, int], float]) -> list[tuple[int, int]]:
    """Return the pairs in order whose costs are least together."""
    best = [[0.0] * (len(b) + 1)]
    for place in a:
        above, row = best[-1], [best[-1][0] + _ALONE]
        for j, other in enumerate(b):
            row.append(min(above[j + 1] + _ALONE, row[j], above[j] + cost(place, other)))
        best.append(row)
    pairs: list[tuple[int, int]] = []
    i, j = len(a), len(b)
    while i and j:
        if best[i][j] == best[i][j - 1]:
            j -= 1
        elif best[i][j] == best[i - 1][j] + _ALONE:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((a[i], b[j]))
    return [pair for pair in reversed(pairs) if cost(*pair) < math.inf]
