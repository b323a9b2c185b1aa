# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Dumps whose entries may get another form; and calls paired again that their order alone has paired wrongly.

Calls of a Cell are paired by their inputs. Reductions, the calls between gradients and optimizer, are paired by the
parameters whose gradients they are given: their order may be another one in B, or lack one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from probe.reading.compare.pairing.alignment import MOVED, Alignment
from probe.reading.compare.pairing.between import plain_arguments
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, GRADIENT
from probe.reading.dumps.flow import Flow, Link, content_key
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import Record, grouped, is_tensor, leaves, tensors_in


class NormalDump(Dump):
    """A dump with entries of its own; the opened dump that it is made of is never changed."""

    def __init__(self, dump: Dump) -> None:
        super().__init__(dump.folder, dump.document._replace(data=dict(dump.data)))
        self._original = dump
        self._copied: set[str] = set()
        self.moved: dict[
            tuple[str, str], str
        ] = {}  # (entry, place) -> its place on disk, if that is another one

    @property
    def stacks(self) -> dict[str, list[str]]:
        """Forward entry name -> frames, innermost first."""
        return self._original.stacks

    @property
    def construct(self) -> dict[str, str | None]:
        """Entry name -> the entry of the Cell around it."""
        return self._original.construct

    def own(self, name: str) -> Any:
        """Return an entry that may be changed, but for its records of tensors, which are shared."""
        if name not in self._copied:
            self._copied.add(name)
            self.data[name] = _copy(self.data[name])
        return self.data[name]

    def replace_records(self, name: str, other: Callable[[Record], Record]) -> None:
        """Put other records in the place of an entry's records of tensors."""
        self._copied.add(name)
        self.data[name] = _copy(self.data[name], other)

    def on_disk(self, name: str, place: str) -> str:
        """Return where a place of an entry, such as "input.0", stands in the file."""
        return self.moved.get((name, place), place)


def _copy(value: Any, other: Callable[[Record], Record] | None = None) -> Any:
    """Return a copy of lists and dicts, with other records of tensors; plain values stay the same objects."""
    if is_tensor(value):
        return other(value) if other else value
    if type(value) is list:
        return [_copy(item, other) for item in value]
    if type(value) is dict and "type" not in value:
        return {key: _copy(item, other) for key, item in value.items()}
    return value


#: the source of a call whose input comes from a call without a partner
_NO_PARTNER = -2


class Rewiring:
    """Looks for Cells in which partners take their inputs from calls that are none, and pairs their calls anew."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment

    def run(self) -> int:
        """Pair anew where that makes more inputs come from partners; return in how many Cells that was done."""
        wrong = {a for a in self._alignment.b_of if self._mismatches(a, self._alignment.b_of[a])}
        if not wrong:
            return 0
        calls_a, calls_b = self._alignment.calls_by_home(0), self._alignment.calls_by_home(1)
        count = 0
        for home, places in calls_a.items():
            if wrong.intersection(places):
                count += self._rewire(places, calls_b.get(home, []))
        self._alignment.pair_backwards()
        return count

    def _mismatches(self, a: int, b: int) -> int:
        """Return how many inputs of two partners come from calls that are no partners."""
        flow_a, flow_b = self._alignment.flows
        links_a, links_b = flow_a.links[a], flow_b.links[b]
        if not links_a or flow_a.names[a] in flow_a.containers:
            return 0
        count = 0
        for left, right in zip(links_a, links_b):
            if (left.root < 0) != (right.root < 0):
                count += 1
            elif left.root >= 0:
                is_other = self._alignment.b_of.get(left.root) != right.root
                count += is_other and not self._alignment.is_one_loosely(left, right)
            elif left.parameter and right.parameter:
                count += self._parameter(0, left) != self._parameter(1, right)
        return count

    def _parameter(self, side: int, link: Link) -> Hashable:
        """Return a name of a parameter that is the same on both sides."""
        assert link.parameter is not None
        cell, name = link.parameter
        place = self._alignment.flows[side].position.get(cell)
        if side == 1 and place is not None:
            return self._alignment.a_of.get(place, cell), name
        return place, name

    def _rewire(self, places_a: list[int], places_b: list[int]) -> bool:
        alignment = self._alignment
        before = {a: alignment.b_of[a] for a in places_a if a in alignment.b_of}
        how = {a: alignment.how[a] for a in before}
        wrong = sum(self._mismatches(a, b) for a, b in before.items()) + self._unlike(before)
        signatures_b = grouped(
            (signature, place) for place, signature in self._signatures(1, places_b).items()
        )
        signatures_a = self._signatures(0, places_a)
        alignment.separate_calls(before)
        for a, signature in signatures_a.items():
            if partners := signatures_b.get(signature):
                b = partners.pop(0)
                alignment.pair(a, b, how[a] if before.get(a) == b else MOVED)
        rest_a = [place for place in places_a if place not in alignment.b_of]
        rest_b = [place for place in places_b if place not in alignment.a_of]
        alignment.pair_sequences(rest_a, rest_b)
        now = {a: alignment.b_of[a] for a in places_a if a in alignment.b_of}
        lost = max(len(before) - len(now), 0)
        if (
            now != before
            and sum(self._mismatches(a, b) for a, b in now.items()) + self._unlike(now) + lost
            < wrong
        ):
            return True
        alignment.separate_calls(now)
        for a, b in before.items():
            alignment.pair(a, b, how[a])
        return False

    def _unlike(self, pairs: dict[int, int]) -> int:
        entry = self._alignment.entry
        return sum(
            plain_arguments(entry(0, a)) != plain_arguments(entry(1, b)) for a, b in pairs.items()
        )

    def _signatures(self, side: int, places: list[int]) -> dict[int, Hashable]:
        """Return a key for each call of a Cell: the API, the plain arguments and the producers of the inputs."""
        found: dict[int, Hashable] = {}
        flow = self._alignment.flows[side]
        inner = set(places)
        for place in places:
            sources: list[Hashable] = []
            for link in flow.links[place]:
                if link.root in inner and link.root in found:
                    sources.append(found[link.root])
                elif link.root >= 0:
                    own = (
                        link.root if side == 0 else self._alignment.a_of.get(link.root, _NO_PARTNER)
                    )
                    sources.append(("call", own))
                elif link.parameter:
                    sources.append(("parameter", self._parameter(side, link)))
                else:
                    sources.append(("outside", str(link.record.get("shape"))))
            name, entry = (
                flow.parts[place].api.strip("_").lower(),
                self._alignment.entry(side, place),
            )
            found[place] = hash((name, plain_arguments(entry), tuple(sources)))
        return found


def pair_reductions(alignment: Alignment, a: NormalDump, b: NormalDump) -> None:
    """Pair such calls anew where that is another pairing, and bring their lists of gradients into the order of A."""
    sides = [_Side(alignment, number, dump) for number, dump in enumerate((a, b))]
    keys_a, keys_b = (side.keys for side in sides)
    if [*keys_a.values()] != [*keys_b.values()] or any(
        alignment.b_of.get(x) != y for x, y in zip(keys_a, keys_b)
    ):
        _pair(alignment, keys_a, keys_b)
    for place_a in keys_a:
        place_b = alignment.b_of.get(place_a)
        if place_b in keys_b:
            _order(sides, place_a, place_b)


def _pair(alignment: Alignment, keys_a: dict[int, Hashable], keys_b: dict[int, Hashable]) -> None:
    before = {a: alignment.b_of[a] for a in keys_a if alignment.b_of.get(a) in keys_b}
    how = {a: alignment.how[a] for a in before}
    for a in before:
        alignment.separate(a)
    free = grouped((key, b) for b, key in keys_b.items() if b not in alignment.a_of)
    for a, key in keys_a.items():
        if a not in alignment.b_of and free.get(key):
            b = free[key].pop(0)
            alignment.pair(a, b, how[a] if before.get(a) == b else MOVED)
    rest_a = [a for a in keys_a if a not in alignment.b_of]
    alignment.pair_sequences(rest_a, [b for b in keys_b if b not in alignment.a_of])


def _order(sides: list[_Side], place_a: int, place_b: int) -> None:
    """Bring the lists of gradients of a call of B into the order that they have in A."""
    for number, (given_a, given_b) in enumerate(
        zip(sides[0].lists(place_a), sides[1].lists(place_b))
    ):
        names = [side.names_of(given) for side, given in zip(sides, (given_a, given_b))]
        if (
            names[0] == names[1]
            or None in names[0]
            or sorted(map(str, names[0])) != sorted(map(str, names[1]))
        ):
            continue
        order = [names[1].index(name) for name in names[0]]
        if len(set(order)) == len(order):
            sides[1].reorder(place_b, number, order)


class _Side:
    """The calls between gradients and optimizer on one side: 0 for A, 1 for B."""

    def __init__(self, alignment: Alignment, number: int, dump: NormalDump) -> None:
        flow: Flow = alignment.flows[number]
        self._flow, self._dump = flow, dump
        self._names: dict[Hashable, Hashable] = {}
        for place, (name, parts) in enumerate(zip(flow.names, flow.parts)):
            for key, record in leaves(dump.data[name]) if parts.kind == GRADIENT else ():
                partner = alignment.a_of.get(place) if number else place
                path = parts.path if partner is None else alignment.flows[0].parts[partner].path
                if is_tensor(record):
                    self._names.setdefault(content_key(record), f"{path}.{key}")
        self.keys: dict[
            int, Hashable
        ] = {}  # place -> API, and the parameters whose gradients the call is given
        for place in self._places() if self._names else ():
            sources = sorted(str(self._source(link)) for link in flow.links[place])
            self.keys[place] = flow.parts[place].key, tuple(sources)
            self._note_outputs(place)

    def _places(self) -> list[int]:
        found: list[int] = []
        waiting: list[int] = []
        for place, (name, parts) in enumerate(zip(self._flow.names, self._flow.parts)):
            if parts.direction == BACKWARD:
                waiting = []
            elif parts.kind == CELL and is_update(parts, self._dump.data[name]):
                found += waiting
                waiting = []
            elif parts.kind == API:
                waiting.append(place)
        return found

    def _source(self, link: Link) -> Hashable:
        return self._names.get(content_key(link.record), str(link.record.get("shape")))

    def _note_outputs(self, place: int) -> None:
        """Give the outputs of a call the names of the gradients that it was given, in their order."""
        given = [
            self._source(link)
            for link in self._flow.links[place]
            if content_key(link.record) in self._names
        ]
        outputs = tensors_in(self._dump.data[self._flow.names[place]], "output")
        if len(given) == len(outputs):
            for name, record in zip(given, outputs):
                self._names.setdefault(content_key(record), (self._flow.parts[place].key, name))

    def lists(self, place: int) -> list[list[Any]]:
        """Return the arguments of a call that are lists of tensors; an empty list for any other."""
        entry = self._dump.data[self._flow.names[place]]
        given = entry.get("input_args") if type(entry) is dict else None
        return [
            item if type(item) is list and all(map(is_tensor, item)) else [] for item in given or ()
        ]

    def names_of(self, given: list[Any]) -> list[Hashable]:
        """Return the names of gradients in a list; None for one without a name."""
        return [self._names.get(content_key(record)) for record in given]

    def reorder(self, place: int, number: int, order: list[int]) -> None:
        """Put a list of gradients into another order, and the outputs too if they are as many."""
        name = self._flow.names[place]
        entry = self._dump.own(name)
        given = entry["input_args"][number]
        entry["input_args"][number] = [given[old] for old in order]
        outputs = entry.get("output")
        if type(outputs) is list and len(outputs) == len(order):
            entry["output"] = [outputs[old] for old in order]
        moved = {f"input.{number}.{old}": f"input.{number}.{new}" for new, old in enumerate(order)}
        self._dump.moved.update({(name, new): old for old, new in moved.items()})
        links = (
            link._replace(place=moved.get(link.place, link.place))
            for link in self._flow.links[place]
        )
        self._flow.links[place] = tuple(sorted(links, key=lambda link: link.place))
