# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Brings two updates of an optimizer to one form: gradients by parameter, numbers that both sides know."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.entry_name import CELL
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.updates import GRADIENTS, by_parameter, gradients, is_update, parameter_names
from probe.reading.dumps.values import is_tensor, plain


def fit_updates(alignment: Alignment, a: NormalDump, b: NormalDump) -> list[int]:
    """Bring paired updates to one form; return their places in A.

    So the order of the parameters, and how they are grouped, make no difference.
    """
    found = []
    flows = alignment.flows
    for place_a, place_b in alignment.b_of.items():
        if flows[0].parts[place_a].kind != CELL:
            continue
        places = place_a, place_b
        entries = [dump.data[flow.names[place]] for dump, flow, place in zip((a, b), flows, places)]
        if all(is_update(flow.parts[place], entry) for flow, place, entry in zip(flows, places, entries)):
            found.append(place_a)
            entries = [dump.own(flow.names[place]) for dump, flow, place in zip((a, b), flows, places)]
            _rename(entries[1], _new_names(alignment, *entries))
            for entry, flow, place, numbers in zip(entries, flows, places, _numbers(*entries)):
                _name_gradients(entry, flow, place)
                entry["input_kwargs"] = {"parameters": entry["input_kwargs"]["parameters"], **numbers}
    return found


def _new_names(alignment: Alignment, a: dict[str, Any], b: dict[str, Any]) -> dict[str, str]:
    """Return the names in A of parameters that have another one in B: those of a renamed Cell.

    Without Cells, parameters that only one side has are the same if they have the same shapes in the same order.
    """
    paths = {}
    for place_a, place_b in alignment.b_of.items():
        of_a, of_b = alignment.flows[0].parts[place_a], alignment.flows[1].parts[place_b]
        if of_a.kind == CELL and of_a.path != of_b.path:
            paths[of_b.path] = of_a.path
    names_a, names_b, made = parameter_names(a), parameter_names(b), {}
    for name in names_b:
        path, _, last = name.rpartition(".")
        moved = f"{paths.get(path, path)}.{last}"
        if moved in names_a and name not in names_a and moved not in names_b:
            made[name] = moved
    shapes_a, shapes_b = (
        dict(zip(names, map(_shape, gradients(entry)))) for names, entry in ((names_a, a), (names_b, b))
    )
    rest_a = [name for name in names_a if name not in names_b and name not in made.values()]
    rest_b = [name for name in names_b if name not in names_a and name not in made]
    if [shapes_a.get(name) for name in rest_a] == [shapes_b.get(name) for name in rest_b]:
        made.update(zip(rest_b, rest_a))
    return made


def _shape(record: Any) -> Any:
    return record.get("shape") if is_tensor(record) else None


def _rename(entry: dict[str, Any], names: dict[str, str]) -> None:
    """Give parameters other names: in the numbers, the states and the results."""
    if not names:
        return
    given = entry["input_kwargs"]
    for part in (given, *(given.get("groups") or ())):
        part["parameters"] = [
            {"type": "str", "value": names.get(plain(name), plain(name))} for name in part["parameters"]
        ]
    for part in (entry.get("parameters"), *(entry.get("output") or ())):
        for key in list(part) if type(part) is dict else ():
            old = next((name for name in names if key == name or key.endswith(f".{name}")), None)
            if old is not None:
                part[f"{key[: -len(old)]}{names[old]}"] = part.pop(key)


def _name_gradients(entry: dict[str, Any], flow: Flow, place: int) -> None:
    names, given = parameter_names(entry), gradients(entry)
    if len(given) != len(names) or type(entry["input_args"][0]) is not list:
        return
    entry["input_args"] = [dict(zip(names, given)), *entry["input_args"][1:]]
    named = {f"{GRADIENTS}{i}": f"{GRADIENTS}{name}" for i, name in enumerate(names)}
    flow.links[place] = tuple(link._replace(place=named.get(link.place, link.place)) for link in flow.links[place])


def _numbers(a: dict[str, Any], b: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of both that both know: one for all parameters, or one for each of them."""
    left, right = by_parameter(a), by_parameter(b)
    made: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for key in left:
        common = [name for name in left[key] if name in right.get(key, ())]
        if not common:
            continue
        values = [{side[key][name] for name in common} for side in (left, right)]
        is_one = all(len(found) == 1 for found in values)
        for side, own in zip((left, right), made):
            own[key] = _record(side[key][common[0]]) if is_one else {name: _record(side[key][name]) for name in common}
    return made


def _record(value: float) -> dict[str, Any]:
    return {"type": "float", "value": value}
