# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs calls that order and outputs leave open.

Those of two frameworks, whose outputs differ, by name, size and place between the pairs found so far; those with equal
inputs; and those of a Cell that is called several times in a step, where the two runs call it in another order.
A key that is inserted in one of two sequences shifts nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import Flow, content_key, user_frame
from probe.reading.dumps.values import element_count, is_tensor, leaves, plain, real, tensors_in

#: calls between two pairs: up to so many combinations are tried
_FEW = 40_000
#: the cost of a call of A without a partner; a pair costs at most 2.0
_ALONE = 3.0

Run = Sequence[int]


def match_between(
    a: Run,
    b: Run,
    b_of: Mapping[int, int],
    key: Callable[[int, int], Hashable],
    cost: Callable[[int, int], float],
) -> Iterator[tuple[int, int]]:
    """Yield pairs of places of calls, in order, between the pairs found so far, ``b_of``.

    ``key`` gives for a side and a place the name and size of a call. They come first where there are many calls.
    ``cost`` gives for two places how little they fit, up to 2.0; inf where they cannot be one.

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


def equal_calls(
    flows: tuple[Flow, Flow], entry: Callable[[int, int], Any], places: tuple[list[int], list[int]]
) -> list[tuple[int, int]]:
    """Return calls of one API with equal inputs, in whichever order they stand; the k-th of several is the k-th."""
    found: list[dict[Hashable, list[int]]] = [{}, {}]
    for side, own in enumerate(places):
        flow = flows[side]
        for number, place in enumerate(own):
            made = entry(side, place)
            given = leaves(made.get("input_args")) if isinstance(made, dict) else []
            contents = tuple((key, _content(leaf)) for key, leaf in given)
            if any(content is not None for _, content in contents):
                found[side].setdefault((flow.parts[place].api, contents), []).append(number)
    both = ((numbers, found[1].get(key, [])) for key, numbers in found[0].items())
    return sorted(
        pair for left, right in both if len(left) == len(right) for pair in zip(left, right)
    )


def _content(leaf: Any) -> Hashable:
    return (content_key(leaf), shape_of(leaf)) if is_tensor(leaf) else repr(plain(leaf))


def first_output(entry: Any) -> Any:
    """Return the record of the first tensor that a call gives; None where it gives none."""
    return next(iter(tensors_in(entry, "output")), None)


def plain_arguments(entry: Any) -> tuple[str, ...]:
    """Return the arguments of a call that are no tensors, as texts."""
    given = leaves(entry.get("input_args")) if isinstance(entry, dict) else []
    return tuple(repr(plain(leaf)) for _, leaf in given if leaf is not None and not is_tensor(leaf))


def first_numbers(entry: dict[str, Any]) -> tuple[str, ...]:
    """Return the numbers of the first output, so rounded that two frameworks agree; () where they tell nothing."""
    record = first_output(entry) or {}
    numbers = [real(record.get(key)) for key in ("Norm", "Max", "Min")]
    return () if None in numbers or not numbers[0] else tuple(f"{number:.2e}" for number in numbers)


def shape_of(record: Any) -> tuple[int, ...] | None:
    """Return the shape of a record; None where it has none."""
    shape = record.get("shape")
    return tuple(shape) if element_count(shape) is not None else None


def crossed_cells(flows: tuple[Flow, Flow], dumps: tuple[Dump, Dump]) -> list[tuple[int, int]]:
    """Return pairs of places of Cells whose inputs tell that they are partners, though their numbers differ.

    All calls of such a Cell are there: each has inputs that no other call of it has, and one partner with the same.
    The Cells around two partners are partners too.
    """
    first, second = (_by_key(flow, dump) for flow, dump in zip(flows, dumps))
    found: list[tuple[int, int]] = []
    partners: dict[int, int] = {}
    for key, given in sorted(
        first.items(), key=lambda item: item[0].count(".")
    ):  # the outer Cells first
        other = second.get(key, {})
        if (
            len(given) < 2
            or list(given) == list(other)
            or given.keys() != other.keys()
            or None in given
        ):
            continue
        pairs = [(place, other[content]) for content, place in given.items()]
        same_lines = all(
            _line(flows[0], dumps[0], a) == _line(flows[1], dumps[1], b) for a, b in pairs
        )
        if same_lines and all(_around(flows, a, partners) == flows[1].cells[b] for a, b in pairs):
            found += pairs  # else the same lines are given other inputs
            partners.update(pairs)
    return found


def _around(flows: tuple[Flow, Flow], place: int, partners: Mapping[int, int]) -> str | None:
    name = flows[0].cells[place]
    own = flows[0].position.get(name) if name else None
    return flows[1].names[partners[own]] if own is not None and own in partners else name


def _line(flow: Flow, dump: Dump, place: int) -> str | None:
    """Return the text of the line that calls a Cell; None where it is not known."""
    frame = user_frame(dump.stacks.get(flow.names[place]) or ())
    return frame.source if frame is not None else None


def _by_key(flow: Flow, dump: Dump) -> dict[str, dict[Any, int]]:
    """Return Cell -> content of the inputs -> place; under None a call whose inputs tell nothing."""
    found: dict[str, dict[Any, int]] = {}
    repeated = {parts.key for parts in flow.parts if parts.kind == CELL and parts.number}
    for place, parts in enumerate(flow.parts) if repeated else ():
        if parts.kind != CELL or parts.direction != FORWARD or parts.key not in repeated:
            continue
        contents = tuple(content_key(link.record) for link in flow.links[place])
        own = found.setdefault(parts.key, {})
        own[None if not contents or None in contents or contents in own else contents] = place
    return found


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
