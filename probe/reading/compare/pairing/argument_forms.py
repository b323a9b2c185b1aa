# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Brings the arguments of partners into one form: by place or by name, one by one or packed in a list.

``softmax(x, -1)`` and ``softmax(x, dim=-1)`` are one call, and so are ``x.view(2, 3)`` and ``x.view((2, 3))``. A dump
does not tell which place a name has. So equal values are taken for one argument, unless the results differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.call_arguments import CallArguments
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import API, CELL, FORWARD
from probe.reading.dumps.flow import Flow, link_key
from probe.reading.dumps.values import Record, is_tensor, tensors_in

#: how far apart two tensors may be that are the same but for noise
_NEAR = 1e-3


def fit_arguments(alignment: Alignment, a: NormalDump, b: NormalDump) -> int:
    """Bring the arguments of partners into one form where that makes them equal; return of how many."""
    flow_a, flow_b = alignment.flows
    count = 0
    for place_a, place_b in alignment.b_of.items():
        parts = flow_a.parts[place_a]
        if parts.direction != FORWARD or parts.kind not in (API, CELL):
            continue
        entry_a = a.data[flow_a.names[place_a]]
        entry_b = b.data[flow_b.names[place_b]]
        if not _has_arguments(entry_a) or not _has_arguments(entry_b):
            continue
        if _have_one_form(entry_a, entry_b):
            continue
        if parts.kind == API and not alignment.is_one_call(place_a, place_b):
            continue
        call_a = CallArguments(a, flow_a, place_a, _sources(flow_a, place_a, None))
        call_b = CallArguments(b, flow_b, place_b, _sources(flow_b, place_b, alignment.a_of))
        # of a Cell the calls in it tell whether an argument is another one
        if _fit(call_a, call_b) and (parts.kind == CELL or _may_be_one(call_a, call_b)):
            call_a.write()
            call_b.write()
            count += 1
    return count


def _sources(flow: Flow, place: int, a_of: Mapping[int, int] | None) -> dict[str, int]:
    """Return for the tensors that a call is given the places in A of the calls that made them, where known."""
    found: dict[str, int] = {}
    for link in flow.links[place]:
        producer = link.producer if a_of is None else a_of.get(link.producer, NONE)
        if producer != NONE:
            found[link.place] = producer
    return found


def _has_arguments(entry: Any) -> bool:
    if type(entry) is not dict:
        return False
    return type(entry.get("input_args")) is list and type(entry.get("input_kwargs")) is dict


def _have_one_form(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two entries have as many arguments, lists at the same places, and the same names in order."""
    if list(map(type, a["input_args"])) != list(map(type, b["input_args"])):
        return False
    named_a = a["input_kwargs"]
    named_b = b["input_kwargs"]
    if not named_a and not named_b:
        return True
    is_one_order = list(named_a) == list(named_b)
    return is_one_order and all(type(named_a[key]) is type(named_b[key]) for key in named_a)


def _fit(a: CallArguments, b: CallArguments) -> bool:
    """Bring two calls into one form; return whether that is another one than before."""
    changed = [_unpack(a, b), _unpack(b, a), _name(a, b), _name(b, a), _unpack_named(a, b)]
    names_a = list(a.named)
    names_b = list(b.named)
    return any(changed) or (names_a != names_b and sorted(names_a) == sorted(names_b))


def _unpack(packed: CallArguments, other: CallArguments) -> bool:
    """Let the values of a list stand in its place where the other side has as many values there; return if so."""
    for number, (own, single) in enumerate(zip(packed.given, other.given)):
        if own is None or single is None or type(own.value) is not list:
            continue
        is_last = number == len(packed.given) - 1
        # all behind it, or one value alone: dim=(1,) and dim=1
        rest = other.given[number:] if is_last else [single]
        is_flat = not any(item is None or type(item.value) is list for item in rest)
        if is_flat and len(own.value) == len(rest):
            packed.given[number : number + 1] = own.items()
            return True
    return False


def _unpack_named(a: CallArguments, b: CallArguments) -> bool:
    """Let the one value of a list stand for it where the other side has a value of that name; return if so."""
    is_changed = False
    for name in a.named.keys() & b.named.keys():
        for own, other in ((a.named, b.named), (b.named, a.named)):
            is_single = type(other[name].value) is not list
            if is_single and type(own[name].value) is list and len(own[name].value) == 1:
                own[name] = own[name].items()[0]
                is_changed = True
    return is_changed


def _name(call: CallArguments, other: CallArguments) -> bool:
    """Give arguments of a call the names that equal ones of the other side have; return whether one got a name."""
    further = range(len(other.given), len(call.given))
    is_named = False
    for name, wanted in other.named.items():
        if name in call.named:
            continue
        wanted_values = other.leaves(wanted)
        for number in further:
            own = call.given[number]
            if own is None:
                continue
            values = call.leaves(own)
            if len(values) == len(wanted_values) and all(map(_is_equal, values, wanted_values)):
                call.named[name] = own
                call.given[number] = None
                is_named = True
                break
    return is_named


def _is_equal(a: tuple[Any, int], b: tuple[Any, int]) -> bool:
    """Return whether two values are one argument: equal ones, or tensors that partners made."""
    value_a, source_a = a
    value_b, source_b = b
    if not is_tensor(value_a) or not is_tensor(value_b):
        return bool(value_a == value_b)
    if value_a.get("shape") != value_b.get("shape"):
        return False
    return source_a == source_b != NONE or link_key(value_a) == link_key(value_b) is not None


def _may_be_one(a: CallArguments, b: CallArguments) -> bool:
    """Return whether two calls may be one in this form.

    Two calls that are given the same tensors, and give other ones, have another argument: ``pool(x, 2)`` and
    ``pool(x, padding=2)``.
    """
    if a.plain_values() != b.plain_values() or not _are_near(a.tensors(), b.tensors()):
        return True
    made_a = dict(enumerate(tensors_in(a.entry, "output")))
    made_b = dict(enumerate(tensors_in(b.entry, "output")))
    return _are_near(made_a, made_b)


def _are_near(a: Mapping[Any, Record], b: Mapping[Any, Record]) -> bool:
    return a.keys() == b.keys() and all(_is_near(a[key], b[key]) for key in a)


def _is_near(a: Record, b: Record) -> bool:
    if a.get("shape") != b.get("shape"):
        return False
    apart = distance(a, b).rel_l2
    return apart is None or apart <= _NEAR
