# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Brings the entries of a dump of PyTorch into the form that their partners of MindSpore have.

That is: dtypes, names of parameters, and the places of an API's arguments.
"""

from __future__ import annotations

import math
from typing import Any

from probe.reading.compare.distances.bounds import distance
from probe.reading.compare.frameworks import words
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import Record, element_count, is_tensor, leaves


def spell_dtypes(dump: NormalDump) -> None:
    """Let the records of a dump of PyTorch have MindSpore's dtypes; a norm is never negative.

    msprobe for PyTorch records the element of a 0-d tensor as its norm.
    """
    spelled: dict[int, Record] = {}  # equal records of a dump are one object, which the opened dump keeps
    for name in dump.data:
        dump.replace_records(name, lambda record: spelled.setdefault(id(record), _spelled(record)))


def _spelled(record: Record) -> Record:
    norm = record.get("Norm")
    own = {"Norm": abs(norm)} if isinstance(norm, (int, float)) and record.get("shape") == [] else {}
    return {**record, "dtype": words.dtype_word(record.get("dtype")), **own}


def fit(alignment: Alignment, a: NormalDump, b: NormalDump) -> None:
    """Give the entries of PyTorch the places that those of MindSpore have."""
    torch = int(b.header.get("framework") == words.PYTORCH)
    dumps, flows = (a, b), alignment.flows
    for pair in alignment.b_of.items():
        own, other = pair[torch], pair[1 - torch]
        parts = flows[torch].parts[own]
        entry = dumps[torch].own(flows[torch].names[own])
        partner = dumps[1 - torch].data[flows[1 - torch].names[other]]
        if not isinstance(entry, dict) or not isinstance(partner, dict):
            continue
        if parts.kind == GRADIENT:
            _rename(entry, partner)
        elif parts.kind == CELL:
            _rename(entry.get("parameters"), partner.get("parameters"))
        elif parts.kind == API and parts.direction == FORWARD:
            one = alignment.is_one_call(*pair)
            moved = _fit_inputs(flows[torch], own, entry, partner.get("input_args") if one else [])
            dumps[torch].moved.update({(flows[torch].names[own], place): old for old, place in moved.items()})


def _rename(own: Any, other: Any) -> None:
    """Give parameters the names that they have on the other side, in the same order."""
    if not isinstance(own, dict) or not isinstance(other, dict):
        return
    renamed = {words.parameter_word(str(name), set(other)): value for name, value in own.items()}
    if len(renamed) == len(own):
        own.clear()
        own.update(renamed)


def _fit_inputs(flow: Flow, place: int, entry: dict[str, Any], wanted: Any) -> dict[str, str]:
    """Put the tensors that an API was given where the other side has tensors of their sizes; the rest goes behind.

    Return place on disk -> new place, of those that fit.
    """
    if not isinstance(wanted, list) or any(not is_tensor(item) and isinstance(item, (list, dict)) and "type" not in item
                                           for item in wanted):  # fmt: skip
        return {}
    given: list[tuple[str, Any]] = [
        (f"{word}.{key}", leaf)
        for part, word in (("input_args", "input"), ("input_kwargs", "kwargs"))
        for key, leaf in leaves(entry.get(part))
    ]
    moved: dict[str, str] = {}
    found: list[Any] = []
    for number, item in enumerate(wanted):
        fitting = [pair for pair in given if _fits(pair, item, number)]
        match = min(fitting, key=lambda pair: _gap(pair[1], item), default=None)
        found.append(match[1] if match else None)
        if match:
            given.remove(match)
            moved[match[0]] = f"input.{number}"
    entry["input_args"] = found
    entry["input_kwargs"] = {word: leaf for word, leaf in given if is_tensor(leaf)}
    flow.links[place] = tuple(
        link._replace(place=moved.get(link.place, f"kwargs.{link.place}")) for link in flow.links[place]
    )
    return moved


def _fits(given: tuple[str, Any], wanted: Any, number: int) -> bool:
    """Return whether an argument may stand at a place: a tensor of this size, or a plain value that stands there."""
    place, value = given
    if is_tensor(wanted):
        return is_tensor(value) and _size(value) == _size(wanted)
    return not is_tensor(value) and place == f"input.{number}"


def _gap(value: Any, wanted: Any) -> float:
    """Return how far apart an argument is from the one at a place: of several of one size the nearest is taken."""
    found = distance(value, wanted).rel_l2 if is_tensor(wanted) else 0.0
    return math.inf if found is None else found


def _size(record: Record) -> int | None:
    return element_count(record.get("shape"))
