# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps: by name, by the tree of Cells, by the order in a Cell."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.frameworks.vocabulary import Vocabulary
from probe.reading.compare.pairing import side as keys
from probe.reading.compare.pairing.between import match_between
from probe.reading.compare.pairing.call_content import equal_calls
from probe.reading.compare.pairing.crossed import crossed_cells
from probe.reading.compare.pairing.partners import (
    COUNTED,
    EXACT,
    MAPPED,
    MOVED,
    RENAMED,
    REPLACED,
    STATISTICS,
    Found,
    Partners,
)
from probe.reading.compare.pairing.sequence import Keys, Pairs, Places, match_values
from probe.reading.compare.pairing.side import Homes, Side
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, GRADIENT
from probe.reading.dumps.values import grouped

_WAYS = (keys.BY_BOTH, keys.BY_CLASS, keys.BY_PLACE, keys.BY_ATTRIBUTE)
_LEVELS = (keys.ARGUMENTS, keys.SHAPES, keys.NAME, keys.OUTPUTS)
#: those of two runs of one code, in which lines and inputs tell more
_LEVELS_WITH_LINES = (keys.CONTENT, keys.LINE, *_LEVELS)
#: so many levels of Cells are paired, one below another
_DEEPEST = 64


class Alignment(Partners):
    """Pairs two dumps.

    ``mapping`` has for names in A those in B: parts of names of Cells and APIs. If ``by_lines``, calls of one line of
    the user's code are paired first. Parallel ranks run other lines.
    """

    def __init__(
        self, a: Dump, b: Dump, mapping: Mapping[str, str] | None = None, by_lines: bool = True
    ) -> None:
        flow_a = a.flow
        flow_b = b.flow_like(flow_a)
        self.vocabulary = Vocabulary((a.header, b.header), mapping)
        side_a = Side(0, a, flow_a, self.vocabulary)
        side_b = Side(1, b, flow_b, self.vocabulary)
        super().__init__(side_a, side_b)
        self._homes: tuple[Homes, Homes] = (flow_a.cells, flow_b.cells)
        is_foreign = self.vocabulary.is_foreign
        self._levels = _LEVELS_WITH_LINES if by_lines and not is_foreign else _LEVELS
        self._positions = self.vocabulary.positions(flow_b)
        crossed = [] if is_foreign else crossed_cells(self.flows, (a, b))
        if flow_a.names == flow_b.names and not mapping and not crossed:
            self._pair_one_by_one(len(flow_a.names))
        else:
            self._pair_all(crossed)

    def _pair_one_by_one(self, count: int) -> None:
        """Pair the entries of two dumps with equal names."""
        every = range(count)
        self.b_of.update(zip(every, every))
        self.a_of.update(zip(every, every))
        self.how.update(dict.fromkeys(every, EXACT))

    def pair_anew(self, keys_a: Keys, keys_b: Keys, before: Found) -> None:
        """Pair calls without partners: those with equal keys, wherever they stand, then the rest in their order.

        ``before`` are the pairs that were taken apart: one that is found again keeps how it was found.
        """
        side_a, side_b = self._sides
        others = grouped((keys_b[b], b) for b in side_b.free(keys_b))
        for a in side_a.free(keys_a):
            equal = others.get(keys_a[a])
            if equal:
                b = equal.pop(0)
                how = before.get((a, b), MOVED)
                self.pair(a, b, how)
        rest_a = side_a.free(keys_a)
        rest_b = side_b.free(keys_b)
        self._pair_sequences(rest_a, rest_b)

    def calls_by_home(self, side: int) -> dict[Hashable, Places]:
        """Return the APIs' forwards by the Cell they are in; Cells of B are named by their partners in A."""
        own = self._sides[side]
        return own.by_home(own.forwards(API), self._homes[side])

    def _pair_all(self, crossed: Pairs) -> None:
        side_a, side_b = self._sides
        self.pair_every(crossed, MOVED)
        self._pair_cells()
        self._homes = (side_a.homes(), side_b.homes())
        calls_a = self.calls_by_home(0)
        calls_b = self.calls_by_home(1)
        for home, places in calls_a.items():
            self._pair_sequences(places, calls_b.get(home, []))
        self._pair_rest()

    def _pair_cells(self) -> None:
        """Pair the Cells' forwards: by name, then below paired Cells by attribute and class, class, and place."""
        side_a, side_b = self._sides
        if keys.LINE in self._levels:
            self._pair_other_counts(side_a, side_b)
        for a in side_a.forwards(CELL):
            name = side_a.flow.names[a]
            mapped = self.vocabulary.name(0, name)
            b = self._positions.get(mapped)
            if b is not None:
                self.pair(a, b, EXACT if side_b.flow.names[b] == name else MAPPED)
        # a Cell that the other side has too is none that was renamed: it is called once more
        only_a = _only_here(side_a, side_b)
        only_b = _only_here(side_b, side_a)
        for _ in range(_DEEPEST):  # one level of Cells each time
            children_a = side_a.by_home(side_a.free(only_a), side_a.homes())
            children_b = side_b.by_home(side_b.free(only_b), side_b.homes())
            count = 0
            for home, cells_a in children_a.items():
                cells_b = children_b.get(home, [])
                count += self._pair_children(cells_a, cells_b)
            if not count:
                return

    def _pair_other_counts(self, side_a: Side, side_b: Side) -> None:
        """Pair the calls of Cells that one side calls more often: the lines tell which call is more."""
        calls_b = side_b.cells()
        for key, places in side_a.cells().items():
            others = calls_b.get(key, [])
            if others and len(places) != len(others):
                lines_a = side_a.lines(places)
                lines_b = side_b.lines(others)
                self.pair_every(match_values(lines_a, lines_b), COUNTED)

    def _pair_children(self, cells_a: Places, cells_b: Places) -> int:
        """Pair Cells that are in paired ones, and return how many."""
        side_a, side_b = self._sides
        count = 0
        for way in _WAYS:
            left_a = side_a.free(cells_a)
            left_b = side_b.free(cells_b)
            if way == keys.BY_PLACE and len(left_a) != len(left_b):
                continue
            keys_a = side_a.cell_keys(left_a, way)
            keys_b = side_b.cell_keys(left_b, way)
            count += self.pair_every(match_values(keys_a, keys_b), RENAMED)
        return count

    def _pair_sequences(self, places_a: Places, places_b: Places) -> None:
        """Pair the calls of one Cell in their order: by their full keys first, then by shorter keys."""
        side_a, side_b = self._sides
        for level in self._levels:
            if level == keys.NAME and self.vocabulary.is_foreign:
                self._pair_between(places_a, places_b)
                return
            words_a = side_a.words(side_a.free(places_a))
            words_b = side_b.words(side_b.free(places_b))
            if not words_a or not words_b:
                return
            has_equal_words = list(words_a.values()) == list(words_b.values())
            pairs: Iterable[tuple[int, int]]
            if level == keys.CONTENT:
                pairs = equal_calls(self.flows, self.entry, words_a, words_b)
            elif has_equal_words:
                pairs = zip(words_a, words_b)
            else:
                keys_a = side_a.call_keys(words_a, level)
                keys_b = side_b.call_keys(words_b, level)
                pairs = match_values(keys_a, keys_b)
            is_open = level == keys.OUTPUTS and not has_equal_words
            for a, b in pairs:
                if not is_open or self._follow_partners(a, b, places_a, places_b):
                    self.pair(a, b, self._how(a, b, level))

    def _follow_partners(self, a: int, b: int, places_a: Places, places_b: Places) -> bool:
        """Return whether the last calls before two that have partners are partners, or there are none."""
        side_a, side_b = self._sides
        before_a = side_a.latest_partner(places_a, a)
        before_b = side_b.latest_partner(places_b, b)
        if before_a is None:
            return before_b is None
        return self.b_of[before_a] == before_b

    def _pair_between(self, places_a: Places, places_b: Places) -> None:
        """Pair calls whose outputs differ, between those whose outputs agree."""
        found = match_between(places_a, places_b, self.b_of, self._word_and_size, self._misfit)
        pairs = list(found)  # before there are new partners
        for a, b in pairs:
            level = keys.NAME if self.is_one_call(a, b) else keys.OUTPUTS
            self.pair(a, b, self._how(a, b, level))

    def _word_and_size(self, side: int, place: int) -> Hashable:
        return self._sides[side].word_and_size(place)

    def _misfit(self, a: int, b: int) -> float:
        """Return how little two calls fit: how far apart their outputs are, and one more for other words."""
        side_a, side_b = self._sides
        output_a = side_a.first_output(a)
        output_b = side_b.first_output(b)
        if output_a is None or output_b is None:
            return math.inf
        if side_a.shapes(a, "output") != side_b.shapes(b, "output"):
            return math.inf
        apart = distance(output_a, output_b).rel_l2 or 0.0
        for_words = 0.0 if self.is_one_call(a, b) else 1.0
        return min(apart, 1.0) + for_words

    def _how(self, a: int, b: int, level: int) -> str:
        flow_a, flow_b = self.flows
        if flow_a.names[a] == flow_b.names[b]:
            return EXACT
        if flow_a.parts[a].key == flow_b.parts[b].key:
            return COUNTED
        if level == keys.OUTPUTS:
            return REPLACED
        is_other = self.vocabulary.is_foreign and not self.is_one_call(a, b)
        return STATISTICS if is_other else MAPPED

    def _pair_rest(self) -> None:
        """Pair backwards and gradients by their forwards, and all else by name."""
        self.pair_backwards()
        cells = self._cells_of_b()
        changed = MAPPED if self.vocabulary.is_foreign else RENAMED
        flow_a, flow_b = self.flows
        side_a, _ = self._sides
        every = range(len(flow_a.names))
        for a in side_a.free(every):
            parts = flow_a.parts[a]
            name = flow_a.names[a]
            other = name
            if parts.kind == GRADIENT and parts.key in cells:
                other = cells[parts.key] + name.removeprefix(parts.key)
            word = self.vocabulary.name(0, other)
            b = self._positions.get(word)
            if b is None:
                continue
            # of a call whose forward was not recorded
            is_orphan = flow_a.forward_of(a) is None and flow_b.forward_of(b) is None
            if is_orphan or parts.kind not in (API, CELL):
                self.pair(a, b, EXACT if name == other else changed)
        self._pair_gradients(cells)

    def _cells_of_b(self) -> dict[str, str]:
        """Return the key of a Cell of A -> that of its partner."""
        flow_a, flow_b = self.flows
        found: dict[str, str] = {}
        for a, b in self.b_of.items():
            parts = flow_a.parts[a]
            if parts.kind == CELL:
                found[parts.key] = flow_b.parts[b].key
        return found

    def _pair_gradients(self, cells: Mapping[str, str]) -> None:
        """Pair the gradients of Cells in their order: recorders number them in several ways, or not at all."""
        gradients_a: dict[str, Places] = {}
        for key, place in self._free_gradients(0):
            other = cells.get(key) or self.vocabulary.name(0, key)
            gradients_a.setdefault(other, []).append(place)
        gradients_b = grouped(self._free_gradients(1))
        for key, places in gradients_a.items():
            others = gradients_b.get(key, [])
            if len(places) == len(others):
                self.pair_every(zip(places, others), COUNTED)

    def _free_gradients(self, side: int) -> Iterator[tuple[str, int]]:
        """Yield the Cell and the place of each that has no partner."""
        own = self._sides[side]
        every = range(len(own.parts))
        for place in own.free(every):
            parts = own.parts[place]
            if parts.kind == GRADIENT:
                yield parts.key, place


def _only_here(side: Side, other: Side) -> Places:
    """Return the forwards of the Cells that only one side has."""
    there = other.keys_of_cells()
    return [place for place in side.forwards(CELL) if side.parts[place].key not in there]
