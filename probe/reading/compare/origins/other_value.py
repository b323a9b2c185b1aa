# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Finds a call that is given another parameter, or another value from outside, and the other run has this value too.

Then neither the parameter nor the batch differs: the call is given the wrong one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps import entry_name
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.flow import Flow, Link, content_key, tells
from probe.reading.dumps.values import is_tensor, part_of

_PARAMETERS = "parameters."
#: the Cell of a parameter as people name it, and its name there
Owned = tuple[str, str]


class OtherParameter(NamedTuple):
    """The parameters that a call uses in A and in B."""

    in_a: Owned
    in_b: Owned


class OtherOutside(NamedTuple):
    """A value from outside that one side gives to a call, and the other side to another call."""

    side: int  # the side whose call is given it here
    user: str  # the entry of the other side that is given the value
    place: str  # where


class OtherValues:
    """The values of both sides that come from no recorded call."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def parameter(self, node: int, slot: Slot) -> OtherParameter | None:
        """Return the parameters that a call uses, if they are two, and the other side has one of them unchanged."""
        owners = [self._owner(node, slot, side) for side in (0, 1)]
        in_a, in_b = owners
        if in_a is None or in_b is None or in_a == in_b:
            return None
        known_a, known_b = self._parameters
        is_of_a = in_b in known_a and known_a[in_b] == known_b.get(in_b)
        is_of_b = in_a in known_b and known_b[in_a] == known_a.get(in_a)
        return OtherParameter(in_a, in_b) if is_of_a or is_of_b else None

    def are_two(self, node: int, slot: Slot) -> bool:
        """Return whether the sides give two parameters, or a parameter and another value."""
        in_a, in_b = (self._owner(node, slot, side) for side in (0, 1))
        return in_a != in_b

    def _owner(self, node: int, slot: Slot, side: int) -> Owned | None:
        """Return which parameter a side gives to a place of a call."""
        place = self._graph.pairs[node].places[side]
        if place == NONE:
            return None
        flow = self._graph.alignment.flows[side]
        if slot.place.startswith(_PARAMETERS):
            return _owned(flow.names[place], slot.place[len(_PARAMETERS) :])
        link = next((link for link in flow.links[place] if link.place == slot.place), None)
        parameter = None if link is None else _parameter_of(flow, link)
        return _owned(*parameter) if parameter else None

    @functools.cached_property
    def _parameters(self) -> tuple[dict[Owned, Any], dict[Owned, Any]]:
        """The parameters of each side, with their contents before their first use."""
        return self._parameters_of(0), self._parameters_of(1)

    def _parameters_of(self, side: int) -> dict[Owned, Any]:
        found: dict[Owned, Any] = {}
        flow = self._graph.alignment.flows[side]
        for place, name in enumerate(flow.names):
            entry = self._graph.alignment.entry(side, place)
            held = part_of(entry, "parameters")
            for key, record in held.items() if isinstance(held, dict) else ():
                owned = _owned(name, key)
                if owned is not None and is_tensor(record):
                    found.setdefault(owned, content_key(record))
        return found

    def exchange(self, node: int, slot: Slot) -> OtherOutside | None:
        """Return where A gives the value of B, if B gives that of A to another call too."""
        found = self.outside(node, slot)
        return found[-1] if len(found) == 2 else None

    def outside(self, node: int, slot: Slot) -> list[OtherOutside]:
        """Return for each side the call to which the other side gives the value of this call; A's comes first."""
        found = []
        for side, record in enumerate((slot.a, slot.b)):
            if not is_tensor(record) or not tells(record):
                continue
            flow = self._graph.alignment.flows[1 - side]
            content = content_key(record)
            own_place = self._graph.pairs[node].places[1 - side]
            own = given_around(flow, own_place, content) if own_place != NONE else ()
            users = self._outside[1 - side].get(content, ())
            around = (given_around(flow, user, content)[-1] for user, _ in users)
            other = next((link for link in around if link not in own), None)
            if other is not None:
                found.append(OtherOutside(side, flow.names[other[0]], other[1]))
        return found

    @functools.cached_property
    def _outside(self) -> tuple[dict[Any, list[tuple[int, str]]], dict[Any, list[tuple[int, str]]]]:
        """The values from outside of each side, by content: the calls that are given one, and the places."""
        return self._outside_of(0), self._outside_of(1)

    def _outside_of(self, side: int) -> dict[Any, list[tuple[int, str]]]:
        found: dict[Any, list[tuple[int, str]]] = {}
        for user, link in self._outside_links(side):
            found.setdefault(content_key(link.record), []).append((user, link.place))
        return found

    def _outside_links(self, side: int) -> Iterator[tuple[int, Link]]:
        flow = self._graph.alignment.flows[side]
        for user, links in enumerate(flow.links):
            if flow.names[user] in flow.containers:
                continue
            for link in links:
                if link.producer < 0 and link.parameter is None and tells(link.record):
                    yield user, link


def _parameter_of(flow: Flow, link: Link) -> tuple[str, str] | None:
    """Return the parameter that an input is, be it as a call has passed it on, such as a cast to its own dtype."""
    content = content_key(link.record)
    if link.parameter or link.producer < 0 or content is None:
        return link.parameter
    passed = (own for own in flow.links[link.producer] if content_key(own.record) == content)
    return next((own.parameter for own in passed if own.parameter), None)


def given_around(flow: Flow, call: int, content: Any) -> list[tuple[int, str]]:
    """Return a call that is given a content, and the Cells around it that are given it too, each with the place."""
    found: list[tuple[int, str]] = []
    at: int | None = call
    while at is not None:
        places = [link.place for link in flow.links[at] if content_key(link.record) == content]
        if found and not places:
            break
        found += [(at, place) for place in places[:1]] or [(at, "")]
        around = flow.cells[at]
        at = flow.position.get(around) if around is not None else None
    return found


def _owned(entry: str, parameter: str) -> Owned | None:
    """Return the owner of a parameter and its name; None where it is held by no Cell."""
    if entry_name.parse(entry).kind != CELL:
        return None
    return str(entry_name.cell_label(entry)), parameter
