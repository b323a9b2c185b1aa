# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs reductions anew, the calls between gradients and optimizer, by the parameters whose gradients they are given.

Their order may be another one in B, or lack one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump, move_links, sort_links
from probe.reading.compare.pairing.partners import Found
from probe.reading.compare.pairing.sequence import Keys, Places
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, GRADIENT
from probe.reading.dumps.flow import Flow, Link, content_key
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import is_tensor, leaves, part_of, tensors_in

#: the names of the gradients in a list; None for one without a name
_Names = list[Hashable]


def pair_reductions(alignment: Alignment, a: NormalDump, b: NormalDump) -> None:
    """Pair such calls anew where that is another pairing, and bring their lists of gradients into the order of A."""
    side_a = _Side(alignment, 0, a)
    side_b = _Side(alignment, 1, b)
    keys_a = side_a.keys
    keys_b = side_b.keys
    partners = [alignment.b_of.get(place) for place in keys_a]
    has_equal_keys = list(keys_a.values()) == list(keys_b.values())
    if not has_equal_keys or partners != list(keys_b):
        _pair_anew(alignment, keys_a, keys_b)
    for place_a in keys_a:
        place_b = alignment.b_of.get(place_a)
        if place_b is not None and place_b in keys_b:
            lists_a = side_a.lists(place_a)
            lists_b = side_b.lists(place_b)
            for number, (names_a, names_b) in enumerate(zip(lists_a, lists_b)):
                _order(b, side_b.flow, place_b, number, names_a, names_b)


def _pair_anew(alignment: Alignment, keys_a: Keys, keys_b: Keys) -> None:
    before: Found = {}
    for (place_a, place_b), how in alignment.found(keys_a).items():
        if place_b in keys_b:
            before[place_a, place_b] = how
            alignment.separate(place_a)
    alignment.pair_anew(keys_a, keys_b, before)


def _order(
    dump: NormalDump, flow: Flow, place: int, number: int, wanted: _Names, names: _Names
) -> None:
    """Bring a list of gradients of a call into the order of these names; of others, or of unknown ones, it stays."""
    if wanted == names or None in wanted:
        return
    if sorted(map(str, wanted)) != sorted(map(str, names)):
        return
    order = [names.index(name) for name in wanted]
    if len(set(order)) == len(order):
        _reorder(dump, flow, place, number, order)


def _reorder(dump: NormalDump, flow: Flow, place: int, number: int, order: list[int]) -> None:
    """Put a list of gradients into another order, and the outputs too if they are as many."""
    name = flow.names[place]
    entry = dump.own(name)
    arguments = entry["input_args"]
    given = arguments[number]
    arguments[number] = [given[old] for old in order]
    outputs = entry.get("output")
    if type(outputs) is list and len(outputs) == len(order):
        entry["output"] = [outputs[old] for old in order]
    moved: dict[str, str] = {}
    for new, old in enumerate(order):
        moved[f"input.{number}.{old}"] = f"input.{number}.{new}"
    dump.note_moves(name, moved)
    move_links(flow, place, moved)
    sort_links(flow, place)


class _Side:
    """The calls between gradients and optimizer on one side: 0 for A, 1 for B."""

    def __init__(self, alignment: Alignment, number: int, dump: Dump) -> None:
        self.flow: Flow = alignment.flows[number]
        self._dump = dump
        self._names = self._gradients(alignment, number)
        #: place -> API, and the parameters whose gradients the call is given
        self.keys: dict[int, Hashable] = {}
        if not self._names:
            return
        for place in self._places():
            key = self.flow.parts[place].key
            sources = [str(self._source(link)) for link in self.flow.links[place]]
            self.keys[place] = (key, tuple(sorted(sources)))
            self._note_outputs(place, key)

    def _gradients(self, alignment: Alignment, number: int) -> dict[Hashable, Hashable]:
        """Return content of a gradient -> the name of its parameter in A."""
        names: dict[Hashable, Hashable] = {}
        flow_a, _ = alignment.flows
        for place, parts in enumerate(self.flow.parts):
            if parts.kind != GRADIENT:
                continue
            place_a = alignment.a_of.get(place) if number else place
            path = parts.path if place_a is None else flow_a.parts[place_a].path
            for key, record in leaves(self._entry(place)):
                if is_tensor(record):
                    names.setdefault(content_key(record), f"{path}.{key}")
        return names

    def _places(self) -> Places:
        """Return the places of calls that stand between a backward and an update."""
        found: Places = []
        waiting: Places = []
        for place, parts in enumerate(self.flow.parts):
            if parts.direction == BACKWARD:
                waiting = []
            elif parts.kind == CELL and is_update(parts, self._entry(place)):
                found += waiting
                waiting = []
            elif parts.kind == API:
                waiting.append(place)
        return found

    def _source(self, link: Link) -> Hashable:
        shape = str(link.record.get("shape"))
        return self._names.get(content_key(link.record), shape)

    def _note_outputs(self, place: int, key: str) -> None:
        """Give the outputs of a call the names of the gradients that it was given, in their order."""
        given: list[Hashable] = []
        for link in self.flow.links[place]:
            content = content_key(link.record)
            if content in self._names:
                given.append(self._names[content])
        outputs = tensors_in(self._entry(place), "output")
        if len(given) == len(outputs):
            for name, record in zip(given, outputs):
                self._names.setdefault(content_key(record), (key, name))

    def _entry(self, place: int) -> Any:
        name = self.flow.names[place]
        return self._dump.data[name]

    def lists(self, place: int) -> list[_Names]:
        """Return for each argument of a call the names of its gradients, if it is a list of tensors; else no names."""
        entry = self._entry(place)
        given = part_of(entry, "input_args")
        return [self._names_of(argument) for argument in given or ()]

    def _names_of(self, argument: Any) -> _Names:
        if type(argument) is not list or not all(map(is_tensor, argument)):
            return []
        return [self._names.get(content_key(record)) for record in argument]
