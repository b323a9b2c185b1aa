# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Parameters that the model itself holds, in none of its Cells, and that only one side has."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.dataflow.graph import Graph
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import is_tensor

OWN = "model_parameters."
WHY = "the model itself holds other parameters"


def is_own_alone(slot: Slot) -> bool:
    """Return whether a place is a parameter of the model itself that only one side has."""
    return slot.place.startswith(OWN) and is_tensor(slot.a) != is_tensor(slot.b)


def is_of_model(entry: Any, parameter: str) -> bool:
    """Return whether the entry of a Cell has a parameter as one of the model, and not of the Cell.

    >>> entry = {"parameters": {"weight": None}, "model_parameters": {"weight": None, "taps": None}}
    >>> is_of_model(entry, "taps"), is_of_model(entry, "weight")
    (True, False)
    """
    if not isinstance(entry, dict):
        return False
    of_cell = entry.get("parameters") or ()
    of_model = entry.get("model_parameters") or ()
    return parameter in of_model and parameter not in of_cell


def alone_names(graph: Graph) -> tuple[list[str], list[str]]:
    """Return the parameters of the model itself that only A has, and that only B has."""
    only_a: list[str] = []
    only_b: list[str] = []
    for slots in graph.slots:
        for slot in slots:
            if is_own_alone(slot):
                names = only_b if is_tensor(slot.b) else only_a
                names.append(slot.place[len(OWN) :])
    return only_a, only_b


def use_of(graph: Graph, node: int, slot: Slot) -> tuple[int, str]:
    """Return the first call outside of the parameter's Cell that is given its content, and where; else the entry."""
    side = int(is_tensor(slot.b))
    flow = graph.alignment.flows[side]
    wanted = content_key(slot.b if side else slot.a)
    for place, links in enumerate(flow.links):
        user = graph.node_of(flow, place)
        if wanted is None or graph.is_container(user) or graph.is_update(user):
            continue
        for link in links:
            if link.parameter is None or content_key(link.record) != wanted:
                continue
            cell, _ = link.parameter
            if cell != flow.cells[place]:
                return user, link.place
    return node, slot.place
