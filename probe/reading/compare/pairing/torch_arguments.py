# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Gives a dump of PyTorch the dtypes, names of parameters and places of arguments that those of MindSpore have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.frameworks.words import PYTORCH, dtype_word, parameter_word
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump, move_links
from probe.reading.dumps.entry_name import API, BACKWARD, CELL, FORWARD, GRADIENT
from probe.reading.dumps.flow import Flow, content_key
from probe.reading.dumps.values import (
    Record,
    count_of,
    is_tensor,
    leaves,
    real,
    tensors_in,
)


class _Argument(NamedTuple):
    place: str
    value: Any


def spell_dtypes(dump: NormalDump) -> None:
    """Let the records of a dump of PyTorch have MindSpore's dtypes; a norm is never negative."""
    # equal records of a dump are one object, which the opened dump keeps
    spelled: dict[int, Record] = {}
    for name in dump.data:
        dump.replace_records(name, lambda record: spelled.setdefault(id(record), _spelled(record)))


def _spelled(record: Record) -> Record:
    spelled = {**record, "dtype": dtype_word(record.get("dtype"))}
    norm = record.get("Norm")
    # msprobe for PyTorch records the element of a 0-d tensor as its norm
    if isinstance(norm, (int, float)) and record.get("shape") == []:
        spelled["Norm"] = abs(norm)
    return spelled


def fit(alignment: Alignment, a: NormalDump, b: NormalDump) -> None:
    """Give the entries of PyTorch the places that those of MindSpore have."""
    is_torch_in_b = b.header.get("framework") == PYTORCH
    torch_dump, other_dump = (b, a) if is_torch_in_b else (a, b)
    flow_a, flow_b = alignment.flows
    flow, other_flow = (flow_b, flow_a) if is_torch_in_b else (flow_a, flow_b)
    for place_a, place_b in alignment.b_of.items():
        own, other = (place_b, place_a) if is_torch_in_b else (place_a, place_b)
        name = flow.names[own]
        parts = flow.parts[own]
        entry = torch_dump.own(name)
        partner = other_dump.data[other_flow.names[other]]
        if not isinstance(entry, dict) or not isinstance(partner, dict):
            continue
        if parts.kind == GRADIENT:
            _rename_like(entry, partner)
        elif parts.kind == CELL:
            _rename_like(entry.get("parameters"), partner.get("parameters"))
            if parts.direction == BACKWARD:
                forward = other_flow.parts[other].forward
                _fit_gradients(entry, partner, _Forward(other_dump.data.get(forward)))
        elif parts.kind == API and parts.direction == FORWARD:
            is_one_call = alignment.is_one_call(place_a, place_b)
            wanted = partner.get("input_args") if is_one_call else []
            if isinstance(wanted, list) and not any(map(_is_nested, wanted)):
                moved = _fit_inputs(entry, wanted)
                torch_dump.note_moves(name, moved)
                _move_inputs(flow, own, moved)


def _move_inputs(flow: Flow, place: int, moved: dict[str, str]) -> None:
    """Give the inputs of a call their new places; those that fit none stand behind the others."""
    links = flow.links[place]
    behind = {link.place: f"kwargs.{link.place}" for link in links}
    move_links(flow, place, {**behind, **moved})


def _rename_like(own: Any, other: Any) -> None:
    if not isinstance(own, dict) or not isinstance(other, dict):
        return
    others = set(other)
    renamed = {parameter_word(str(name), others): value for name, value in own.items()}
    if len(renamed) == len(own):
        own.clear()
        own.update(renamed)


class _Forward:
    """The tensors that a module of MindSpore was given and has returned."""

    def __init__(self, entry: Any) -> None:
        given = [*tensors_in(entry, "input_args"), *tensors_in(entry, "input_kwargs")]
        made = [content_key(record) for record in tensors_in(entry, "output")]
        known = [key for key in made if key is not None]
        #: the inputs that it has returned as they are: MindSpore tells no gradient of them
        self.returned = [record for record in given if content_key(record) in known]
        self.has_returned_one_twice = len(set(known)) < len(known)


def _fit_gradients(entry: dict[str, Any], partner: dict[str, Any], forward: _Forward) -> None:
    """Put the gradients of a module where the other side has them; one that has no place there is a difference.

    The gradients of an input that the module returned are those of its neighbours, and are compared there.
    """
    if forward.returned and not any(map(_has_tensors, partner.values())):
        entry.update(partner)
        return
    entry["input"] = _nested_like(entry.get("input"), partner.get("input"), forward)
    entry["output"] = _placed_like(entry.get("output"), partner.get("output"), forward.returned)


def _nested_like(own: Any, other: Any, forward: _Forward) -> Any:
    """Return the gradients of a module's outputs in the form of the other side.

    PyTorch hands a module's hook a flat list of them, where the module has returned an object with fields.
    """
    given = [value for _, value in leaves(own) if is_tensor(value)]
    wanted = [value for _, value in leaves(other) if is_tensor(value)]
    is_flat = isinstance(own, list) and not any(map(_is_nested, own))
    if not is_flat or not wanted or len(given) < len(wanted):
        return own
    if len(given) == len(wanted):
        return _filled(other, iter(given))
    if forward.has_returned_one_twice:
        # PyTorch has a gradient for each place of a tensor that is returned twice, MindSpore their sum
        return _filled(other, ({**value, "not_combined": True} for value in wanted))
    return _placed_like(own, other, forward.returned)


def _placed_like(own: Any, other: Any, returned: list[Record]) -> Any:
    """Return the gradients of a module's inputs at the places of the other side; the rest stands behind them.

    PyTorch lists those of the inputs that need one. The gradients of inputs that were returned are left out, and those
    of inputs that the module does not use.
    """
    if not isinstance(own, list) or not isinstance(other, list) or not _has_tensors(other):
        return own
    given = [_Argument(f"output.{place}", value) for place, value in leaves(own)]

    def place(form: Any) -> Any:
        if is_tensor(form):
            nearest = _nearest(given, form, "")
            if nearest is None:
                return None
            given.remove(nearest)
            return nearest.value
        if isinstance(form, list):
            return [place(item) for item in form]
        if isinstance(form, dict) and "type" not in form:
            return {key: place(item) for key, item in form.items()}
        return None

    placed = [place(item) for item in other]
    sizes = {count_of(record) for record in returned}
    for _, value in given:
        is_told = is_tensor(value) and count_of(value) not in sizes
        if is_told and not _is_zero(value):
            placed.append(value)
    return placed


def _is_zero(record: Record) -> bool:
    """Return whether all elements are zero: PyTorch has such a gradient of an input that the module does not use."""
    return real(record.get("Max")) == real(record.get("Min")) == 0.0


def _has_tensors(part: Any) -> bool:
    return any(is_tensor(value) for _, value in leaves(part))


def _filled(form: Any, values: Iterator[Any]) -> Any:
    """Return a form whose tensors are the next values."""
    if is_tensor(form):
        return next(values)
    if isinstance(form, list):
        return [_filled(item, values) for item in form]
    if isinstance(form, dict) and "type" not in form:
        return {key: _filled(item, values) for key, item in form.items()}
    return form


def _is_nested(argument: Any) -> bool:
    """Return whether an argument holds others."""
    return isinstance(argument, (list, dict)) and "type" not in argument


def _fit_inputs(entry: dict[str, Any], wanted: list[Any]) -> dict[str, str]:
    """Put tensors of an API where the other side has their sizes, the rest behind; return place on disk -> new one."""
    given = _arguments(entry)
    moved: dict[str, str] = {}
    fitted: list[Any] = []
    for number, argument in enumerate(wanted):
        place = f"input.{number}"
        nearest = _nearest(given, argument, place)
        if nearest is None:
            fitted.append(None)
        else:
            given.remove(nearest)
            moved[nearest.place] = place
            fitted.append(nearest.value)
    entry["input_args"] = fitted
    entry["input_kwargs"] = {place: value for place, value in given if is_tensor(value)}
    return moved


def _arguments(entry: dict[str, Any]) -> list[_Argument]:
    given: list[_Argument] = []
    for word, part in (("input", "input_args"), ("kwargs", "input_kwargs")):
        for key, value in leaves(entry.get(part)):
            given.append(_Argument(f"{word}.{key}", value))
    return given


def _nearest(given: list[_Argument], wanted: Any, place: str) -> _Argument | None:
    """Return the argument that may stand at a place: of several of one size the nearest; None where none may."""
    if not is_tensor(wanted):
        for argument in given:
            if argument.place == place and not is_tensor(argument.value):
                return argument
        return None
    size = count_of(wanted)
    fitting: list[_Argument] = []
    for argument in given:
        value = argument.value
        if is_tensor(value) and count_of(value) == size:
            fitting.append(argument)
    return min(fitting, key=lambda argument: _gap(argument.value, wanted), default=None)


def _gap(value: Record, wanted: Record) -> float:
    """Return how far apart an argument is from the one at a place."""
    apart = distance(value, wanted).rel_l2
    return math.inf if apart is None else apart
