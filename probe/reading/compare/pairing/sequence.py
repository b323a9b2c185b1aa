# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Matches two sequences of keys, so that a key inserted in one shifts nothing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

_SMALL = 3_000
#: how far two long sequences may part, and how many keys must agree where they meet again
_WINDOW, _AGREE = 64, 4


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
    return _in_step(a, b)


def _in_step(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Match long sequences in one walk: where they part, they meet again at the nearest place where keys agree."""
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] != b[j]:
            i, j = _meeting(a, b, i, j)
            continue
        pairs.append((i, j))
        i, j = i + 1, j + 1
    return pairs


def _meeting(a: Sequence[Hashable], b: Sequence[Hashable], i: int, j: int) -> tuple[int, int]:
    for agree in (_AGREE, 1):
        for apart in range(1, _WINDOW):
            for skip in range(apart + 1):
                x, y = i + skip, j + apart - skip
                if a[x : x + agree] == b[y : y + agree] and x < len(a) and y < len(b):
                    return x, y
    return i + 1, j + 1
