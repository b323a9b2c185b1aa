# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""One of two dumps whose calls are paired: its calls, and the keys by which they find their partners."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from probe.reading.compare.frameworks.vocabulary import Vocabulary
from probe.reading.compare.pairing.call_content import (
    first_numbers,
    first_output,
    plain_arguments,
    shape_of,
    shapes_of_inputs,
)
from probe.reading.compare.pairing.sequence import Keys, Places
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD
from probe.reading.dumps.flow import Flow, user_frame
from probe.reading.dumps.values import element_count, grouped, tensors_in

#: the keys by which the calls of a Cell are paired, one after another: equal inputs; API and line; API, shapes and
#: arguments; API and shapes; API; the shapes of the outputs
CONTENT = -2
LINE = -1
ARGUMENTS = 0
SHAPES = 1
NAME = 2
OUTPUTS = 3
#: the ways in which Cells are paired: by attribute and class, by class, by place alone, by attribute alone
BY_BOTH = 0
BY_CLASS = 1
BY_PLACE = 2
BY_ATTRIBUTE = 3
#: no Cell is in more others
_DEEPEST = 200

#: the innermost Cell with a partner around each entry
Homes = list["str | None"]


class Side:
    """The calls of a dump; ``number`` is 0 for A, 1 for B."""

    def __init__(self, number: int, dump: Dump, flow: Flow, vocabulary: Vocabulary) -> None:
        self.number = number
        self.dump = dump
        self.flow = flow
        self.parts = flow.parts
        #: place -> place of its partner on the other side
        self.partners: dict[int, int] = {}
        self._vocabulary = vocabulary
        self._is_foreign = vocabulary.is_foreign

    def entry(self, place: int) -> Any:
        """Return the entry of a place."""
        return self.dump.data[self.flow.names[place]]

    def free(self, places: Iterable[int]) -> Places:
        """Return the places that have no partner."""
        return [place for place in places if place not in self.partners]

    def forwards(self, kind: str) -> Places:
        """Return the places of the forwards of a kind."""
        found: Places = []
        for place, parts in enumerate(self.parts):
            if parts.kind == kind and parts.direction == FORWARD:
                found.append(place)
        return found

    def cells(self) -> dict[str, Places]:
        """Return the key of each Cell -> the places of its forwards."""
        return grouped((self.parts[place].key, place) for place in self.forwards(CELL))

    def keys_of_cells(self) -> frozenset[str]:
        """Return the keys of all Cells, of those too that have no forward."""
        return frozenset(parts.key for parts in self.parts if parts.kind == CELL)

    def homes(self) -> Homes:
        """Return for each entry the innermost Cell around it that has a partner."""
        position = self.flow.position
        construct = self.dump.construct
        known: dict[str | None, str | None] = {None: None}
        homes: Homes = []
        for innermost in self.flow.cells:
            cell = innermost
            chain: list[str] = []
            while cell is not None and cell not in known and len(chain) < _DEEPEST:
                chain.append(cell)
                if position.get(cell) in self.partners:
                    known[cell] = cell
                else:
                    cell = construct.get(cell)
            home = known.get(cell)
            known.update(dict.fromkeys(chain, home))
            homes.append(home)
        return homes

    def by_home(self, places: Places, homes: Homes) -> dict[Hashable, Places]:
        """Return places by the Cells around them; Cells of B are named by their partners in A."""
        return grouped((self._home(homes[place]), place) for place in places)

    def _home(self, cell: str | None) -> Hashable:
        place = self.flow.position.get(cell) if cell else None
        if place is None or self.number == 0:
            return place
        return self.partners.get(place, (place,))

    def word(self, place: int) -> str:
        """Return the word for the API of a call."""
        return self._vocabulary.call(self.number, self.parts[place])

    def words(self, places: Places) -> dict[int, str]:
        """Return place -> the word for its API."""
        return {place: self.word(place) for place in places}

    def word_and_size(self, place: int) -> Hashable:
        """Return the word for an API and the size of its output."""
        return self.word(place), self.shapes(place, "output")

    def lines(self, places: Places) -> Keys:
        """Return place -> the line of the user's code that made the call; the place where none is known."""
        return {place: self.line(place) or (self.number, place) for place in places}

    def line(self, place: int) -> tuple[str, str] | None:
        """Return the text and the function of the line of the user's code that made a call; None where not known."""
        name = self.flow.names[place]
        frame = user_frame(self.dump.stacks.get(name) or ())
        if frame is None or not frame.source:
            return None
        return frame.source, frame.function

    def shapes(self, place: int, key: str) -> Hashable:
        """Return the shapes of the tensors in a part of an entry."""
        records = tensors_in(self.entry(place), key)
        shapes = tuple(map(shape_of, records))
        if not self._is_foreign:
            return shapes
        # two frameworks agree in sizes alone: of the first output, and of parameters in any order
        sizes = map(element_count, shapes)
        return frozenset(sizes) if key == "parameters" else tuple(sizes)[:1]

    def cell_keys(self, places: Places, way: int) -> Keys:
        """Return the keys of Cells for one of the ways in which they are paired."""
        return {place: self._cell_key(place, way) for place in places}

    def _cell_key(self, place: int, way: int) -> Hashable:
        parts = self.parts[place]
        attribute = parts.path.rpartition(".")[2]
        if way == BY_ATTRIBUTE:
            return attribute, parts.number
        shapes = self.shapes(place, "parameters")
        if way == BY_PLACE:
            return shapes, self.shapes(place, "output")
        word = self._vocabulary.class_name(parts)
        if way == BY_CLASS:
            return word, shapes
        return attribute, word, parts.number, shapes

    def call_keys(self, words: dict[int, str], level: int) -> Keys:
        """Return the keys of calls at a level; a word stands behind its place."""
        return {place: self._call_key(place, word, level) for place, word in words.items()}

    def _call_key(self, place: int, word: str, level: int) -> Hashable:
        """Return the key of a call.

        Two frameworks make other calls with other arguments for one thing. Their outputs have the same numbers: the key
        is API and output, at the level of shapes the output alone.
        """
        if level == OUTPUTS:  # other APIs may give the same shapes
            return self.shapes(place, "output")
        if level == LINE:
            return word, (self.line(place) or (self.number, place))
        entry = self.entry(place)
        if self._is_foreign and isinstance(entry, dict):
            size = self.shapes(place, "output")
            numbers = first_numbers(entry) or (self.number, place)
            return (size, numbers) if level == SHAPES else (word, size, numbers)
        if level == NAME or not isinstance(entry, dict):
            return word
        shapes = shapes_of_inputs(entry)
        if level == SHAPES:
            return word, shapes
        return word, shapes, plain_arguments(entry)

    def first_output(self, place: int) -> Any:
        """Return the record of the first tensor that a call gives; None where it gives none."""
        return first_output(self.entry(place))

    def latest_partner(self, places: Places, before: int) -> int | None:
        """Return the last of some places before one of them that has a partner; None where none has one."""
        for place in reversed(places[: places.index(before)]):
            if place in self.partners:
                return place
        return None
