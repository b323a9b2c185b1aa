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
from probe.reading.check.difference import are_equal, json_fact, listed, pair
from probe.reading.check.snapshot import RunSnapshot
from probe.reading.dumps.call_kinds import is_random
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import CELL, FORWARD, EntryName
from probe.reading.dumps.flow import Link, content_key, is_constant
from probe.reading.dumps.text import shape as shape_text
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import (
    Record,
    count_of,
    greatest,
    is_tensor,
    leaves,
    plain,
    real,
)

#: the levels that record calls of functions: else most values come from calls that were not recorded
_LEVELS = frozenset(("L1", "mix"))
_EXACT = ("dtype", "shape", "Max", "Min")
_SUMS = ("Mean", "Norm")
#: the numbers that tell two tensors apart, the plainest first
_TOLD = ("Mean", "Max", "Min", "Norm", "md5")
#: sums of two devices differ by this part
_ROUNDING = 1e-5
_USED = ("input_args", "input_kwargs", "parameters")
_PARTS = (("input_args", "input"), ("input_kwargs", "kwargs"), ("attributes", "attributes"))


@dataclass(frozen=True)
class OutsideCheck:
    """How the values from outside agree in one step."""

    step: int
    agreeing: int  # how many tensors from outside agree
    difference: Sentence  # the first that differs, before any call gives another output
    unknown: Sentence  # the first of which it cannot be known whether it is another one
    last: str  # the call behind which no calls were compared, as one side lacks it; "" for none


def check_outside(a: RunSnapshot, b: RunSnapshot, batches: BatchCheck) -> OutsideCheck | None:
    """Compare the values from outside in the first step that both runs have a dump and a batch of.

    None where there is none, or it has no calls of functions.
    """
    for step in batches.steps:
        dump_a = dump_of(a, step)
        dump_b = dump_of(b, step)
        if dump_a is not None and dump_b is not None:
            levels = {dump.header.get("level") for dump in (dump_a, dump_b)}
            if not levels <= _LEVELS:
                return None
            rounding = 0.0 if a.run.get("device") == b.run.get("device") else _ROUNDING
            return _Walk(step, batches.known(step), rounding).over(dump_a, dump_b)
    return None


class _Walk:
    """A walk over the calls of one step."""

    def __init__(self, step: int, known: set[Any], rounding: float) -> None:
        """``known`` are the contents that agree by their checksums; Mean and Norm may differ by ``rounding``."""
        self._step = step
        self._known = known
        self._rounding = rounding
        self._agreeing = 0
        self._untold: dict[Any, Sentence] = {}  # places by content
        self._other = ""  # the first call that gave another output
        self._difference = NOTHING
        self._unknown = NOTHING

    def over(self, a: Dump, b: Dump) -> OutsideCheck:
        """Compare the calls of both dumps in A's order, until one side lacks one."""
        last = ""
        for call in _calls(a, b, self._rounding):
            if isinstance(call, str):
                last = call
                break
            self._look(call)
            if self._difference:
                break
        last = last or _only_in(b, a)
        return OutsideCheck(self._step, self._agreeing, self._difference, self._unknown, last)

    def _look(self, call: _CallPair) -> None:
        difference = call.other_tensor() or call.other_number()
        if difference and self._other:
            behind = say("gap.outside_behind", said=difference, name=self._other)
            self._unknown = self._unknown or behind
        elif difference:
            self._difference = difference
        else:
            self._agreeing += len(call.outside)
        if self._other or difference:
            return
        for content, place in call.untold(self._known).items():
            self._untold.setdefault(content, place)
        if call.gives_other():
            self._other = call.name
            if self._untold and not call.is_explained():
                places = listed(self._untold.values())
                self._unknown = say("gap.outside_value", places=places, name=call.name)


@dataclass(frozen=True)
class _CallPair:
    """A call of A, and the call of B with its name."""

    name: str
    parts: EntryName
    entry_a: Mapping[str, Any]
    entry_b: Mapping[str, Any]
    outside: list[tuple[Link, Link]]  # the tensors that no recorded call made on either side
    rounding: float  # by so much Mean and Norm may differ

    def other_tensor(self) -> Sentence:
        """Return how the first tensor from outside differs."""
        for link_a, link_b in self.outside:
            if _differ(link_a.record, link_b.record, self.rounding):
                field = _told_field(link_a.record, link_b.record)
                return say(
                    "check.outside",
                    place=link_a.place,
                    name=self.name,
                    a=_described(link_a.record, field),
                    b=_described(link_b.record, field),
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
            is_tensor(record)
            and is_tensor(outputs_b[place])
            and _differ(record, outputs_b[place], self.rounding)
            for place, record in outputs_a.items()
        )

    def untold(self, known: set[Any]) -> dict[Any, Sentence]:
        """Return the tensors from outside whose numbers agree, and whose elements may not, by their contents."""
        found = {}
        for link, _ in self.outside:
            record = link.record
            content = content_key(record)
            size = count_of(record)
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
                if other is None or not is_tensor(other) or _differ(record, other, self.rounding):
                    return True
        return False


def _calls(a: Dump, b: Dump, rounding: float) -> Iterator[_CallPair | str]:
    """Yield the calls of both dumps in A's order; the name of the first that B lacks is the last."""
    flow_a = a.flow
    flow_b = b.flow_like(flow_a)
    for place_a, (name, parts) in enumerate(zip(flow_a.names, flow_a.parts)):
        entry_a = a.data[name]
        entry_b = b.data.get(name)
        if parts.direction != FORWARD or not isinstance(entry_a, dict) or is_update(parts, entry_a):
            continue
        if not isinstance(entry_b, dict):
            yield name
            return
        if parts.kind == CELL and name in flow_a.containers:
            continue
        links_b = {link.place: link for link in flow_b.links[flow_b.position[name]]}
        outside = [
            (link, links_b[link.place])
            for link in flow_a.links[place_a]
            if _is_outside(link) and link.place in links_b and _is_outside(links_b[link.place])
        ]
        yield _CallPair(name, parts, entry_a, entry_b, outside, rounding)


def _only_in(dump: Dump, other: Dump) -> str:
    """Return the first forward call that one dump alone has; "" for none."""
    for name, parts in zip(dump.flow.names, dump.flow.parts):
        if parts.direction == FORWARD and name not in other.data:
            return name
    return ""


def _is_outside(link: Link) -> bool:
    return link.producer < 0 and link.parameter is None


def _differ(a: Record, b: Record, rounding: float) -> bool:
    """Return whether two tensors differ in what is known of them."""
    if rounding and not a.get("md5"):
        return any(not are_equal(a.get(key), b.get(key)) for key in _EXACT) or any(
            not _are_near(a, b, key, rounding) for key in _SUMS
        )
    return any(not are_equal(a.get(key), b.get(key)) for key in (*_EXACT, *_SUMS, "md5"))


def _are_near(a: Record, b: Record, key: str, rounding: float) -> bool:
    """Return whether a mean or norm of two devices agrees, as these sum in other orders."""
    x = real(a.get(key))
    y = real(b.get(key))
    if x is None or y is None:
        return are_equal(a.get(key), b.get(key))
    return abs(x - y) <= rounding * max(abs(x), abs(y), greatest(a), greatest(b))


def _told_field(a: Record, b: Record) -> str:
    """Return the first number that tells two tensors apart; "Mean" for none."""
    return next((field for field in _TOLD if not are_equal(a.get(field), b.get(field))), "Mean")


def _described(record: Record, field: str) -> Sentence:
    """Return dtype, shape and one number of a tensor, with all its digits."""
    return say(
        "check.outside_tensor",
        dtype=str(record.get("dtype")),
        shape=shape_text(record.get("shape")),
        field=field,
        value=json_fact(record.get(field)),
    )


def _plain_values(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and texts that a call was given, by place."""
    for key, word in _PARTS:
        for place, leaf in leaves(entry.get(key)):
            if isinstance(leaf, dict) and not is_tensor(leaf):
                yield f"{word}.{place}", plain(leaf)
