# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps: by name, by the tree of Cells, by the order in a Cell."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from probe.reading.compare.distances.tolerance import distance
from probe.reading.compare.frameworks.words import Vocabulary
from probe.reading.compare.pairing import between
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import Flow, Link, user_frame
from probe.reading.dumps.values import element_count, tensors_in

#: how a pair was found
EXACT, COUNTED, MOVED, RENAMED, MAPPED, STATISTICS, REPLACED = (
    "exact", "counted", "moved", "renamed", "mapped", "statistics", "replaced"
)  # fmt: skip
NONE = -1
#: the keys by which the calls of a Cell are paired, one after another
CONTENT, LINE = -2, -1
_LEVELS = (CONTENT, LINE, 0, 1, 2, 3)
#: the ways in which Cells are paired: by attribute and class, by class, by place alone, by attribute alone
_WAYS, _BY_PLACE = 4, 2


class Pair(NamedTuple):
    """Two entries that stand for one call."""

    a: int  # its place in A; -1 where it is only in B
    b: int  # its place in B; -1 where it is only in A
    #: how it was found: "exact" (by name), "counted" (another number), "moved" (another place in its Cell), "renamed"
    #: (another Cell), "mapped", "statistics" (another API with the same output), "replaced" (another API), or "" for
    #: one without a partner
    how: str


class Alignment:
    """Pairs two dumps.

    ``mapping`` has for names in A those in B: parts of names of Cells and APIs. If ``by_lines``, calls of one line of
    the user's code are paired first. Parallel ranks run other lines.
    """

    def __init__(
        self, a: Dump, b: Dump, mapping: Mapping[str, str] | None = None, by_lines: bool = True
    ) -> None:
        self._dumps = a, b
        self._by_lines = by_lines
        self.flows: tuple[Flow, Flow] = a.flow, b.flow_like(a.flow)
        self.b_of: dict[int, int] = {}  # place in A -> place in B
        self.a_of: dict[int, int] = {}  # place in B -> place in A
        self.how: dict[int, str] = {}  # place in A -> how its partner was found
        self._homes: tuple[list[str | None], list[str | None]] = ([], [])
        self.vocabulary = Vocabulary((a.header, b.header), mapping)
        self._positions = self.vocabulary.positions(self.flows[1])
        crossed = [] if self.vocabulary.is_foreign else between.crossed_cells(self.flows, (a, b))
        if self.flows[0].names == self.flows[1].names and not mapping and not crossed:
            every = range(len(self.flows[0].names))
            self.b_of, self.a_of = dict(zip(every, every)), dict(zip(every, every))
            self.how = dict.fromkeys(every, EXACT)
        else:
            for pair in crossed:
                self.pair(*pair, MOVED)
            self._pair_cells()
            self._homes = self._find_homes(0), self._find_homes(1)
            calls_a, calls_b = self.calls_by_home(0), self.calls_by_home(1)
            for home, places in calls_a.items():
                self.pair_sequences(places, calls_b.get(home, []))
            self._pair_rest()

    def pair(self, a: int, b: int, how: str) -> bool:
        """Pair two places unless one of them has a partner."""
        if a in self.b_of or b in self.a_of:
            return False
        self.b_of[a], self.a_of[b], self.how[a] = b, a, how
        return True

    def separate(self, a: int) -> None:
        """Take a pair apart."""
        del self.a_of[self.b_of.pop(a)], self.how[a]

    def separate_calls(self, places: Iterable[int]) -> None:
        """Take pairs apart, by their places in A, with their backwards."""
        for a in dict.fromkeys(places):
            self.separate(a)
            backward = self.flows[0].backward_of(a)
            if backward is not None and backward in self.b_of:
                self.separate(backward)

    def is_one_loosely(self, left: Link, right: Link) -> bool:
        """Return whether an input comes from partners after all, if views and permutations are looked through."""
        return self.b_of.get(self.flows[0].loose_root(left)) == self.flows[1].loose_root(right)

    def pairs(self) -> list[Pair]:
        """Return all pairs in the order of B; those only in A stand where they are in A."""
        found: list[Pair] = []
        waiting = iter(range(len(self.flows[0].names)))
        done = NONE
        for b in range(len(self.flows[1].names)):
            a = self.a_of.get(b, NONE)
            while done < a:
                done = next(waiting)
                if done not in self.b_of:
                    found.append(Pair(done, NONE, ""))
            found.append(Pair(a, b, self.how.get(a, "")))
        found += [Pair(place, NONE, "") for place in waiting if place not in self.b_of]
        return found

    def _pair_cells(self) -> None:
        """Pair the Cells' forwards: by name, then below paired Cells by attribute and class, class, and place."""
        flow_a = self.flows[0]
        for places_a, places_b in self._called_more_often():
            lines = (
                [self._line(0, place) for place in places_a],
                [self._line(1, place) for place in places_b],
            )
            for i, j in between.match(*lines):
                self.pair(places_a[i], places_b[j], COUNTED)
        for place, name in enumerate(flow_a.names):
            parts = flow_a.parts[place]
            if parts.kind == CELL and parts.direction == FORWARD and place not in self.b_of:
                mapped = self.vocabulary.name(0, name)
                other = self._positions.get(mapped)
                if other is not None:
                    self.pair(place, other, EXACT if mapped == name else MAPPED)
        for _ in range(64):  # one level of Cells each time
            children_a, children_b = self._unpaired_cells(0), self._unpaired_cells(1)
            if not sum(
                [
                    self._pair_children(children_a[home], children_b.get(home, []))
                    for home in children_a
                ]
            ):
                return

    def _called_more_often(self) -> list[tuple[list[int], list[int]]]:
        """Return the calls of each Cell that the sides call so many times: the lines tell which call is more."""
        found: list[dict[str, list[int]]] = [{}, {}]
        for side, by_key in (
            enumerate(found) if self._by_lines and not self.vocabulary.is_foreign else ()
        ):
            for place in self._forwards(side, CELL):
                by_key.setdefault(self.flows[side].parts[place].key, []).append(place)
        both = [(places, found[1][key]) for key, places in found[0].items() if key in found[1]]
        return [(places, others) for places, others in both if len(places) != len(others)]

    def _unpaired_cells(self, side: int) -> dict[Hashable, list[int]]:
        """Return the Cells without a partner, by the nearest Cell around them that has one; the outermost only."""
        partner = (self.b_of, self.a_of)[side]
        cells = [place for place in self._forwards(side, CELL) if place not in partner]
        return self._by_home(side, cells, self._find_homes(side))

    def _forwards(self, side: int, kind: str) -> list[int]:
        parsed = enumerate(self.flows[side].parts)
        return [
            place for place, parts in parsed if parts.kind == kind and parts.direction == FORWARD
        ]

    def _by_home(
        self, side: int, places: list[int], homes: list[str | None]
    ) -> dict[Hashable, list[int]]:
        """Return places by the innermost Cell around them that has a partner; Cells of B are named by those in A."""
        found: dict[Hashable, list[int]] = {}
        for place in places:
            home = homes[place]
            own = self.flows[side].position.get(home) if home else None
            key = None if own is None else own if side == 0 else self.a_of.get(own, (own,))
            found.setdefault(key, []).append(place)
        return found

    def _pair_children(self, cells_a: list[int], cells_b: list[int]) -> int:
        count, keys = (
            0,
            [{part.key for part in flow.parts if part.kind == CELL} for flow in self.flows],
        )
        for way in range(_WAYS):
            # a Cell that the other side has too is none that was renamed: it is called once more
            left_a = [
                p
                for p in cells_a
                if p not in self.b_of and self.flows[0].parts[p].key not in keys[1]
            ]
            left_b = [
                p
                for p in cells_b
                if p not in self.a_of and self.flows[1].parts[p].key not in keys[0]
            ]
            if way == _BY_PLACE and len(left_a) != len(left_b):
                continue
            keys_a = [self._cell_key(0, place, way) for place in left_a]
            keys_b = [self._cell_key(1, place, way) for place in left_b]
            count += sum(
                self.pair(left_a[i], left_b[j], RENAMED) for i, j in between.match(keys_a, keys_b)
            )
        return count

    def _find_homes(self, side: int) -> list[str | None]:
        flow, partner = self.flows[side], (self.b_of, self.a_of)[side]
        construct = self._dumps[side].construct
        known: dict[str | None, str | None] = {None: None}

        def home(cell: str | None) -> str | None:
            chain: list[str | None] = []
            while cell not in known and len(chain) < 200:
                chain.append(cell)
                if cell is not None and flow.position.get(cell, NONE) in partner:
                    known[cell] = cell
                    break
                cell = construct.get(cell) if cell is not None else None
            result = known.get(cell)
            known.update(dict.fromkeys(chain, result))
            return result

        return [home(cell) for cell in flow.cells]

    def calls_by_home(self, side: int) -> dict[Hashable, list[int]]:
        """Return the APIs' forwards by the Cell they are in; Cells of B are named by their partners in A."""
        return self._by_home(
            side, self._forwards(side, API), self._homes[side] or self.flows[side].cells
        )

    def pair_sequences(self, places_a: list[int], places_b: list[int]) -> None:
        """Pair the calls of one Cell in their order: by their full keys first, then by shorter keys."""
        flow_a, flow_b = self.flows
        for level in _LEVELS:
            if level < 0 and (self.vocabulary.is_foreign or not self._by_lines):
                continue
            if level == 2 and self.vocabulary.is_foreign:
                pairs = between.match_between(
                    places_a, places_b, self.b_of, self._name_and_size, self._misfit
                )
                for a, b in list(
                    pairs
                ):  # calls whose outputs differ, between those whose outputs agree
                    self.pair(a, b, self._how(a, b, 2 if self.is_one_call(a, b) else 3))
                return
            left_a = [place for place in places_a if place not in self.b_of]
            left_b = [place for place in places_b if place not in self.a_of]
            if not left_a or not left_b:
                return
            names_a = [self.vocabulary.call(0, flow_a.parts[place]) for place in left_a]
            names_b = [self.vocabulary.call(1, flow_b.parts[place]) for place in left_b]
            if level == CONTENT:
                found: Iterable[tuple[int, int]] = between.equal_calls(
                    self.flows, self.entry, (left_a, left_b)
                )
            elif names_a == names_b:
                found = ((i, i) for i in range(len(left_a)))
            elif level == 3:
                shapes = [
                    self.shapes(0, place, "output") for place in left_a
                ]  # other APIs may give the same shapes
                found = between.match(shapes, [self.shapes(1, place, "output") for place in left_b])
            else:
                keys_a = [
                    self._call_key(0, place, names_a[i], level) for i, place in enumerate(left_a)
                ]
                keys_b = [
                    self._call_key(1, place, names_b[i], level) for i, place in enumerate(left_b)
                ]
                found = between.match(keys_a, keys_b)
            for i, j in found:
                if (
                    level < 3
                    or names_a == names_b
                    or self._between(left_a[i], left_b[j], places_a, places_b)
                ):
                    self.pair(left_a[i], left_b[j], self._how(left_a[i], left_b[j], level))

    def _line(self, side: int, place: int) -> Hashable:
        """Return the line of the user's code that made a call: its text and function; the place where none is known."""
        dump = self._dumps[side]
        frame = user_frame(dump.stacks.get(self.flows[side].names[place]) or ())
        return (
            (frame.source, frame.function) if frame is not None and frame.source else (side, place)
        )

    def _how(self, a: int, b: int, level: int) -> str:
        if self.flows[0].names[a] == self.flows[1].names[b]:
            return EXACT
        same = self.flows[0].parts[a].key == self.flows[1].parts[b].key
        if same or level == 3:
            return COUNTED if same else REPLACED
        return STATISTICS if self.vocabulary.is_foreign and not self.is_one_call(a, b) else MAPPED

    def is_one_call(self, a: int, b: int) -> bool:
        """Return whether one word stands for the APIs of two places."""
        vocabulary, (flow_a, flow_b) = self.vocabulary, self.flows
        return vocabulary.call(0, flow_a.parts[a]) == vocabulary.call(1, flow_b.parts[b])

    def _name_and_size(self, side: int, place: int) -> Hashable:
        return self.vocabulary.call(side, self.flows[side].parts[place]), self.shapes(
            side, place, "output"
        )

    def _misfit(self, a: int, b: int) -> float:
        """Return how little two calls fit: how far apart their outputs are, and one more for other words."""
        records = [
            between.first_output(self.entry(side, place)) for side, place in enumerate((a, b))
        ]
        if None in records or self.shapes(0, a, "output") != self.shapes(1, b, "output"):
            return math.inf
        return min(distance(*records).rel_l2 or 0.0, 1.0) + (not self.is_one_call(a, b))

    def _between(self, a: int, b: int, places_a: list[int], places_b: list[int]) -> bool:
        i, j = places_a.index(a), places_b.index(b)
        before_a = next((place for place in reversed(places_a[:i]) if place in self.b_of), None)
        before_b = next((place for place in reversed(places_b[:j]) if place in self.a_of), None)
        return (before_a is None and before_b is None) or (
            before_a is not None and self.b_of[before_a] == before_b
        )

    def _pair_rest(self) -> None:
        """Pair backwards and gradients by their forwards, and all else by name."""
        flow_a, flow_b = self.flows
        self.pair_backwards()
        cells = {
            flow_a.parts[a].key: flow_b.parts[b].key
            for a, b in self.b_of.items()
            if flow_a.parts[a].kind == CELL
        }
        for place, parts in enumerate(flow_a.parts):
            if place in self.b_of:
                continue
            name = flow_a.names[place]
            if parts.kind == GRADIENT and parts.key in cells:
                name = f"{cells[parts.key]}{name[len(parts.key) :]}"
            other = self._positions.get(self.vocabulary.name(0, name))
            is_orphan = (
                other is not None
                and flow_a.forward_of(place) is None
                and flow_b.forward_of(other) is None
            )
            if other is not None and (
                parts.kind not in (API, CELL) or is_orphan
            ):  # the forwards were not recorded
                changed = MAPPED if self.vocabulary.is_foreign else RENAMED
                self.pair(place, other, EXACT if name == flow_a.names[place] else changed)
        self._pair_gradients(cells)

    def _pair_gradients(self, cells: Mapping[str, str]) -> None:
        """Pair the gradients of Cells in their order: recorders number them in several ways, or not at all."""
        found: list[dict[str, list[int]]] = [{}, {}]
        for side, flow in enumerate(self.flows):
            for place, parts in enumerate(flow.parts):
                if parts.kind == GRADIENT and place not in (self.b_of, self.a_of)[side]:
                    key = (
                        cells.get(parts.key, self.vocabulary.name(0, parts.key))
                        if side == 0
                        else parts.key
                    )
                    found[side].setdefault(key, []).append(place)
        for key, places in found[0].items():
            others = found[1].get(key, [])
            if len(places) == len(others):
                for a, b in zip(places, others):
                    self.pair(a, b, COUNTED)

    def pair_backwards(self) -> None:
        """Pair the backwards of paired forwards."""
        flow_a, flow_b = self.flows
        for a, b in list(self.b_of.items()):
            if flow_a.parts[a].direction == FORWARD and flow_a.parts[a].kind in (API, CELL):
                back_a, back_b = flow_a.backward_of(a), flow_b.backward_of(b)
                if back_a is not None and back_b is not None:
                    self.pair(back_a, back_b, self.how[a])

    def entry(self, side: int, place: int) -> Any:
        """Return the entry of a place."""
        return self._dumps[side].data[self.flows[side].names[place]]

    def shapes(self, side: int, place: int, key: str) -> Hashable:
        """Return the shapes of the tensors in a part of an entry."""
        shapes = [between.shape_of(record) for record in tensors_in(self.entry(side, place), key)]
        if not self.vocabulary.is_foreign:
            return tuple(shapes)
        # two frameworks agree in sizes alone: of the first output, and of parameters in any order
        return (
            frozenset(map(element_count, shapes))
            if key == "parameters"
            else tuple(map(element_count, shapes[:1]))
        )

    def _call_key(self, side: int, place: int, name: str, level: int) -> Hashable:
        """Return the key of a call: API and line; at level 0 API, shapes and arguments, at 1 no arguments, at 2 API.

        Two frameworks make other calls with other arguments for one thing. Their outputs have the same numbers: the key
        is API and output, at level 1 the output alone.
        """
        if level == LINE:
            return name, self._line(side, place)
        entry = self.entry(side, place)
        if self.vocabulary.is_foreign and isinstance(entry, dict):
            size = self.shapes(side, place, "output")
            output = between.first_numbers(entry) or (side, place)
            return (size, output) if level == 1 else (name, size, output)
        if level == 2 or not isinstance(entry, dict):
            return name
        shapes = tuple(map(between.shape_of, tensors_in(entry, "input_args")))
        return (name, shapes) if level == 1 else (name, shapes, between.plain_arguments(entry))

    def _cell_key(self, side: int, place: int, way: int) -> Hashable:
        """Return the key of a Cell for one of the ways in which Cells are paired."""
        parts, shapes = self.flows[side].parts[place], self.shapes(side, place, "parameters")
        attribute, word = parts.path.rpartition(".")[2], self.vocabulary.class_name(parts)
        if way == _BY_PLACE:
            return shapes, self.shapes(side, place, "output")
        return (
            (attribute, word, parts.number, shapes),
            (word, shapes),
            (),
            (attribute, parts.number),
        )[way]
