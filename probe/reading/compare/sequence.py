# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Matches two sequences of keys, so that what was inserted in one shifts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

_SMALL = 3_000


def match(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of places with equal keys, both in order.

    >>> match("abcd", "abxcd")
    [(0, 0), (1, 1), (2, 3), (3, 4)]
    """
    start, end_a, end_b = 0, len(a), len(b)
    while start < end_a and start < end_b and a[start] == b[start]:
        start += 1
    while end_a > start and end_b > start and a[end_a - 1] == b[end_b - 1]:
        end_a, end_b = end_a - 1, end_b - 1
    pairs = [(place, place) for place in range(start)]
    if start < end_a and start < end_b:
        pairs += [(i + start, j + start) for i, j in _middle(a[start:end_a], b[start:end_b])]
    pairs += [(end_a + place, end_b + place) for place in range(len(a) - end_a)]
    return pairs


def _middle(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    if len(a) <= _SMALL and len(b) <= _SMALL:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        return [(i + k, j + k) for i, j, size in blocks for k in range(size)]
    return _by_unique(a, b)


def _by_unique(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Match long sequences at the keys that are unique in both, then between them."""
    once_a, once_b = Counter(a), Counter(b)
    places = {key: place for place, key in enumerate(b) if once_b[key] == 1}
    candidates = [(i, places[key]) for i, key in enumerate(a) if once_a[key] == 1 and key in places]
    anchors = _increasing(candidates)
    if not anchors:  # nothing to hold on to: in order, as far as it goes
        return [(place, place) for place in range(min(len(a), len(b))) if a[place] == b[place]]
    pairs: list[tuple[int, int]] = []
    before = (-1, -1)
    for anchor in [*anchors, (len(a), len(b))]:
        i, j = before[0] + 1, before[1] + 1
        if i < anchor[0] and j < anchor[1]:
            pairs += [(i + x, j + y) for x, y in match(a[i : anchor[0]], b[j : anchor[1]])]
        if anchor[0] < len(a):
            pairs.append(anchor)
        before = anchor
    return pairs


def _increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of pairs, ordered by the first, in which the second increases too."""
    from bisect import bisect_left

    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for place, (_, j) in enumerate(pairs):
        slot = bisect_left(tails, j)
        before.append(ends[slot - 1] if slot else -1)
        if slot == len(tails):
            tails.append(j)
            ends.append(place)
        else:
            tails[slot], ends[slot] = j, place
    found = []
    place = ends[-1] if ends else -1
    while place >= 0:
        found.append(pairs[place])
        place = before[place]
    return found[::-1]
