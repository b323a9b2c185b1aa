# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Brings paired updates of optimizers to one form, whatever the order and groups of their parameters."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump, move_links
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.updates import (
    GRADIENTS,
    by_parameter,
    gradients,
    is_update,
    parameter_names,
)
from probe.reading.dumps.values import is_tensor, plain

_Entry = dict[str, Any]
#: number -> its record, or those of the parameters
_Numbers = dict[str, Any]


def fit_updates(alignment: Alignment, a: NormalDump, b: NormalDump) -> list[int]:
    """Bring paired updates to one form, whatever the order and groups of parameters; return their places in A."""
    flow_a, flow_b = alignment.flows
    places: list[int] = []
    for place_a, place_b in alignment.b_of.items():
        if not _is_update(a, flow_a, place_a):
            continue
        if not _is_update(b, flow_b, place_b):
            continue
        places.append(place_a)
        name_a = flow_a.names[place_a]
        name_b = flow_b.names[place_b]
        entry_a = a.own(name_a)
        entry_b = b.own(name_b)
        other_names = _other_names(alignment, entry_a, entry_b)
        if other_names:
            _rename(entry_b, other_names)
        numbers_a, numbers_b = _numbers(entry_a, entry_b)
        _give_form(entry_a, flow_a, place_a, numbers_a)
        _give_form(entry_b, flow_b, place_b, numbers_b)
    return places


def _is_update(dump: NormalDump, flow: Flow, place: int) -> bool:
    parts = flow.parts[place]
    if parts.kind != CELL:
        return False
    name = flow.names[place]
    return is_update(parts, dump.data[name])


def _other_names(alignment: Alignment, a: _Entry, b: _Entry) -> dict[str, str]:
    """Return the names in A of parameters that have another one in B: those of a renamed Cell."""
    paths = _other_paths(alignment)
    names_a = parameter_names(a)
    names_b = parameter_names(b)
    renamed: dict[str, str] = {}
    for name in names_b:
        path, _, last = name.rpartition(".")
        other_path = paths.get(path, path)
        other = f"{other_path}.{last}"
        is_free = other not in names_b and name not in names_a
        if is_free and other in names_a:
            renamed[name] = other
    # without Cells, parameters that only one side has are the same if they have the same shapes in the same order
    rest_a = _without(names_a, names_b, renamed.values())
    rest_b = _without(names_b, names_a, renamed)
    if _shapes(rest_a, names_a, a) == _shapes(rest_b, names_b, b):
        renamed.update(zip(rest_b, rest_a))
    return renamed


def _without(names: list[str], others: list[str], renamed: Collection[str]) -> list[str]:
    return [name for name in names if name not in others and name not in renamed]


def _other_paths(alignment: Alignment) -> dict[str, str]:
    """Return path of a Cell in B -> its path in A, if that is another one."""
    flow_a, flow_b = alignment.flows
    paths: dict[str, str] = {}
    for place_a, place_b in alignment.b_of.items():
        parts_a = flow_a.parts[place_a]
        parts_b = flow_b.parts[place_b]
        if parts_a.kind == CELL and parts_a.path != parts_b.path:
            paths[parts_b.path] = parts_a.path
    return paths


def _shapes(wanted: list[str], names: list[str], entry: _Entry) -> list[Any]:
    """Return the shapes of the gradients of parameters; None for one that is not known."""
    records = dict(zip(names, gradients(entry)))
    shapes: list[Any] = []
    for name in wanted:
        record: Any = records.get(name)
        shapes.append(record.get("shape") if is_tensor(record) else None)
    return shapes


def _rename(entry: _Entry, names: dict[str, str]) -> None:
    """Give parameters of an update other names: in its groups, its parameters and its states."""
    given = entry["input_kwargs"]
    groups = given.get("groups") or ()
    for part in (given, *groups):
        own = [plain(record) for record in part["parameters"]]
        others = [names.get(name, name) for name in own]
        part["parameters"] = [{"type": "str", "value": name} for name in others]
    states = entry.get("output") or ()
    for part in (entry.get("parameters"), *states):
        if type(part) is dict:
            _rename_keys(part, names)


def _rename_keys(part: _Entry, names: dict[str, str]) -> None:
    """Give keys that are the name of a parameter, or end with one, its other name."""
    for key in list(part):
        for name, other in names.items():
            if key == name or key.endswith(f".{name}"):
                above = key[: -len(name)]
                part[above + other] = part.pop(key)
                break


def _give_form(entry: _Entry, flow: Flow, place: int, numbers: _Numbers) -> None:
    """Name the gradients of an update by their parameters, and let it have these numbers alone."""
    names = parameter_names(entry)
    given = gradients(entry)
    first, *others = entry.get("input_args") or [None]
    if len(given) == len(names) and type(first) is list:
        by_name = dict(zip(names, given))
        entry["input_args"] = [by_name, *others]
        moved: dict[str, str] = {}
        for number, name in enumerate(names):
            moved[f"{GRADIENTS}{number}"] = f"{GRADIENTS}{name}"
        move_links(flow, place, moved)
    parameters = entry["input_kwargs"]["parameters"]
    entry["input_kwargs"] = {"parameters": parameters, **numbers}


def _numbers(a: _Entry, b: _Entry) -> tuple[_Numbers, _Numbers]:
    """Return the numbers of both that both know: one for all parameters, or one for each of them."""
    numbers_a = by_parameter(a)
    numbers_b = by_parameter(b)
    made_a: _Numbers = {}
    made_b: _Numbers = {}
    for key, values_a in numbers_a.items():
        values_b = numbers_b.get(key, {})
        own_a = {name: value for name, value in values_a.items() if name in values_b}
        own_b = {name: values_b[name] for name in own_a}
        if own_a:
            is_one = _is_one(own_a) and _is_one(own_b)
            made_a[key] = _records(own_a, is_one)
            made_b[key] = _records(own_b, is_one)
    return made_a, made_b


def _is_one(values: dict[str, float]) -> bool:
    return len(set(values.values())) == 1


def _records(values: dict[str, float], is_one: bool) -> dict[str, Any]:
    """Return the record of a number: one for all parameters, or one for each of them."""
    records = {name: {"type": "float", "value": value} for name, value in values.items()}
    if is_one:
        return next(iter(records.values()))
    return records
