# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the equal keys of two sequences, in order: a key that is inserted in one of them shifts nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from difflib import SequenceMatcher

#: longer sequences are matched in one walk
_SMALL = 3_000
#: how far two long sequences may part
_WINDOW = 64
#: how many keys must agree where they meet again
_AGREE = 4

#: places of calls, in their order
Places = list[int]
#: two places each
Pairs = list[tuple[int, int]]
#: place -> the key by which it finds its partner
Keys = Mapping[int, Hashable]
_Sequence = Sequence[Hashable]


def match_values(a: Keys, b: Keys) -> Pairs:
    """Return pairs of places with equal keys, both in order; a place stands before its key.

    >>> match_values({10: "a", 11: "b"}, {20: "x", 21: "a", 22: "b"})
    [(10, 21), (11, 22)]
    """
    places_a = list(a)
    places_b = list(b)
    pairs = match(list(a.values()), list(b.values()))
    return [(places_a[i], places_b[j]) for i, j in pairs]


def match(a: _Sequence, b: _Sequence) -> Pairs:
    """Return pairs of indexes with equal keys, both in order.

    >>> match("abcd", "abxcd")
    [(0, 0), (1, 1), (2, 3), (3, 4)]
    """
    start = 0
    end_a = len(a)
    end_b = len(b)
    while start < end_a and start < end_b and a[start] == b[start]:
        start += 1
    while end_a > start and end_b > start and a[end_a - 1] == b[end_b - 1]:
        end_a -= 1
        end_b -= 1
    pairs: Pairs = list(zip(range(start), range(start)))
    if start < end_a and start < end_b:
        middle_a = a[start:end_a]
        middle_b = b[start:end_b]
        for i, j in _middle(middle_a, middle_b):
            pairs.append((start + i, start + j))
    pairs += zip(range(end_a, len(a)), range(end_b, len(b)))
    return pairs


def _middle(a: _Sequence, b: _Sequence) -> Pairs:
    if len(a) > _SMALL or len(b) > _SMALL:
        return _in_step(a, b)
    pairs: Pairs = []
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    for i, j, size in matcher.get_matching_blocks():
        pairs += zip(range(i, i + size), range(j, j + size))
    return pairs


def _in_step(a: _Sequence, b: _Sequence) -> Pairs:
    """Match long sequences in one walk: where they part, they meet again at the nearest place where keys agree."""
    pairs: Pairs = []
    i = 0
    j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i += 1
            j += 1
        else:
            i, j = _meeting(a, b, i, j)
    return pairs


def _meeting(a: _Sequence, b: _Sequence, i: int, j: int) -> tuple[int, int]:
    """Return the nearest indexes behind two where keys agree: several of them, else one; the next where none do."""
    for agree in (_AGREE, 1):
        for apart in range(1, _WINDOW):
            for skip in range(apart + 1):
                x = i + skip
                y = j + apart - skip
                is_inside = x < len(a) and y < len(b)
                if is_inside and a[x : x + agree] == b[y : y + agree]:
                    return x, y
    return i + 1, j + 1
