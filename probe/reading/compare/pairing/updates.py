# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Brings two updates of an optimizer to one form: gradients by parameter, numbers that both sides know."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.dump import Dump
from probe.reading.flow import Flow
from probe.reading.updates import GRADIENTS, by_parameter, gradients, is_update, parameter_names


def fit_updates(alignment: Alignment, a: Dump, b: Dump) -> list[int]:
    """Change the entries of paired updates in memory; return their places in A.

    So the order of the parameters, and how they are grouped, make no difference.

    Args:
        alignment: the pairs.
        a: A.
        b: B.
    """
    found = []
    for place_a, place_b in alignment.b_of.items():
        places = place_a, place_b
        flows = alignment.flows
        entries = [dump.data[flow.names[place]] for dump, flow, place in zip((a, b), flows, places)]
        if all(is_update(flow.parts[place], entry) for flow, place, entry in zip(flows, places, entries)):
            found.append(place_a)
            for entry, flow, place, numbers in zip(entries, flows, places, _numbers(*entries)):
                _name_gradients(entry, flow, place)
                entry["input_kwargs"] = {"parameters": entry["input_kwargs"]["parameters"], **numbers}
    return found


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
