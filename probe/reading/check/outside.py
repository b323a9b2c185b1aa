# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Values that recorded calls take from elsewhere: tables, masks, labels of a closure, and numbers of Python.

The calls of equal names are walked in their order, until the outputs of one differ. Behind it a value may differ
because of that call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.check.batch import dump_of
from probe.reading.check.batches import BatchCheck
from probe.reading.check.difference import are_equal, listed, pair
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.call_kinds import is_random
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD, EntryName
from probe.reading.dumps.flow import Link, content_key, is_constant
from probe.reading.dumps.text import number, shape as shape_text
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import Record, element_count, is_tensor, leaves, plain

#: the levels that record calls of functions: else most values come from calls that were not recorded
_LEVELS = ("L1", "mix")
_KEYS = ("dtype", "shape", "Max", "Min", "Mean", "Norm", "md5")
_USED = ("input_args", "input_kwargs", "parameters")
_PARTS = (("input_args", "input"), ("input_kwargs", "kwargs"), ("attributes", "attributes"))


@dataclass(frozen=True)
class OutsideCheck:
    """How the values from outside agree in one step."""

    step: int
    agreeing: int = 0  # how many tensors from outside agree
    difference: Sentence = NOTHING  # the first that differs
    unknown: Sentence = NOTHING  # a value whose numbers agree, and whose contents may differ


def check_outside(a: RunSnapshot, b: RunSnapshot) -> OutsideCheck | None:
    """Compare the values from outside in the first step that both runs have a dump of.

    None where there is none, or it has no calls of functions.
    """
    batches = BatchCheck(a, b)
    for step in batches.steps:
        dump_a = dump_of(a, step)
        dump_b = dump_of(b, step)
        if dump_a is not None and dump_b is not None:
            return _check_step(step, dump_a, dump_b, batches.known(step))
    return None


def _check_step(step: int, a: Dump, b: Dump, known: set[Any]) -> OutsideCheck | None:
    """Compare the values of one step; ``known`` are the contents that agree by their checksums."""
    if a.header.get("level") not in _LEVELS or b.header.get("level") not in _LEVELS:
        return None
    agreeing = 0
    untold: dict[Any, Sentence] = {}  # by content
    for call in _calls(a, b):
        difference = call.other_tensor() or call.other_number()
        if difference:
            return OutsideCheck(step, agreeing, difference)
        agreeing += len(call.outside)
        untold = {**call.untold(known), **untold}
        if call.gives_other():
            is_explained = not untold or call.is_explained()
            places = list(reversed(untold.values()))
            unknown = say("gap.outside_value", places=listed(places), name=call.name)
            return OutsideCheck(step, agreeing, unknown=NOTHING if is_explained else unknown)
    return OutsideCheck(step, agreeing)


@dataclass(frozen=True)
class _CallPair:
    """A call of A, and the call of B with its name."""

    name: str
    parts: EntryName
    entry_a: Mapping[str, Any]
    entry_b: Mapping[str, Any]
    outside: list[tuple[Link, Link]]  # the tensors that no recorded call made on either side

    def other_tensor(self) -> Sentence:
        """Return how the first tensor from outside differs."""
        for link_a, link_b in self.outside:
            if _differ(link_a.record, link_b.record):
                return say(
                    "check.outside",
                    place=link_a.place,
                    name=self.name,
                    a=_described(link_a.record),
                    b=_described(link_b.record),
                )
        return NOTHING

    def other_number(self) -> Sentence:
        """Return how the first plain value that the call was given differs."""
        plain_b = dict(_plain_values(self.entry_b))
        for place, value in _plain_values(self.entry_a):
            if place in plain_b and not are_equal(value, plain_b[place]):
                values = pair(value, plain_b[place])
                return say("check.outside_value", place=place, name=self.name, values=values)
        return NOTHING

    def gives_other(self) -> bool:
        """Return whether an output differs, or one side alone has it."""
        outputs_a = dict(leaves(self.entry_a.get("output")))
        outputs_b = dict(leaves(self.entry_b.get("output")))
        if outputs_a.keys() != outputs_b.keys():
            return True
        return any(
            is_tensor(record) and is_tensor(outputs_b[place]) and _differ(record, outputs_b[place])
            for place, record in outputs_a.items()
        )

    def untold(self, known: set[Any]) -> dict[Any, Sentence]:
        """Return the tensors from outside whose numbers agree, and whose elements may not, by their contents."""
        found = {}
        for link, _ in self.outside:
            record = link.record
            content = content_key(record)
            size = element_count(record.get("shape"))
            is_told = record.get("md5") or is_constant(record) or content in known
            if not is_told and (size is None or size > 1):
                found[content or link.place] = say(
                    "check.outside_place",
                    place=link.place,
                    name=self.name,
                    dtype=str(record.get("dtype")),
                    shape=shape_text(record.get("shape")),
                )
        return found

    def is_explained(self) -> bool:
        """Return whether random numbers, or another tensor that the call used, explain its other output."""
        if is_random(self.parts):
            return True
        for part in _USED:
            used_b = dict(leaves(self.entry_b.get(part)))
            for place, record in leaves(self.entry_a.get(part)):
                other = used_b.get(place)
                if record is None or not is_tensor(record):
                    continue
                if other is None or not is_tensor(other) or _differ(record, other):
                    return True
        return False


def _calls(a: Dump, b: Dump) -> Iterator[_CallPair]:
    """Yield the calls of both dumps in A's order, until one side alone has a call."""
    flow_a = a.flow
    flow_b = b.flow_like(flow_a)
    for place_a, (name, parts) in enumerate(zip(flow_a.names, flow_a.parts)):
        entry_a = a.data[name]
        entry_b = b.data.get(name)
        if parts.direction != FORWARD or not isinstance(entry_a, dict) or is_update(parts, entry_a):
            continue
        if not isinstance(entry_b, dict):
            return
        if parts.kind == CELL and name in flow_a.containers:
            continue
        links_b = {link.place: link for link in flow_b.links[flow_b.position[name]]}
        outside = [
            (link, links_b[link.place])
            for link in flow_a.links[place_a]
            if _is_outside(link) and link.place in links_b and _is_outside(links_b[link.place])
        ]
        yield _CallPair(name, parts, entry_a, entry_b, outside)


def _is_outside(link: Link) -> bool:
    return link.producer < 0 and link.parameter is None


def _differ(a: Record, b: Record) -> bool:
    return any(not are_equal(a.get(key), b.get(key)) for key in _KEYS)


def _described(record: Record) -> Sentence:
    """Return dtype, shape and mean of a tensor."""
    return say(
        "check.outside_tensor",
        dtype=str(record.get("dtype")),
        shape=shape_text(record.get("shape")),
        mean=number(record.get("Mean")),
    )


def _plain_values(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and texts that a call was given, by place."""
    for key, word in _PARTS:
        for place, leaf in leaves(entry.get(key)):
            if isinstance(leaf, dict) and not is_tensor(leaf):
                yield f"{word}.{place}", plain(leaf)
