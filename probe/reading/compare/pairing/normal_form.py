# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The form in which two dumps are compared: one spelling of dtypes, places and updates. Opened dumps stay as they are.

An entry that needs another form is a new one. Its places on disk are kept, so that "input 0" is input 0 on disk.
Calls that only one level records are left out: they are no difference of the trainings. A dump of PyTorch gets the
dtypes, the names of parameters and the places of arguments that its partners of MindSpore have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.distances.tolerance import distance
from probe.reading.compare.frameworks import words
from probe.reading.compare.frameworks.words import PYTORCH, are_two
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.reductions import NormalDump, Rewiring, pair_reductions
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, FORWARD, GRADIENT, parse
from probe.reading.dumps.flow import Flow, content_key
from probe.reading.dumps.updates import (
    GRADIENTS,
    by_parameter,
    gradients,
    is_update,
    parameter_names,
)
from probe.reading.dumps.values import Record, element_count, grouped, is_tensor, leaves, plain


class NormalPair(NamedTuple):
    """Two dumps in one form, and their pairs."""

    a: NormalDump  # A (golden)
    b: NormalDump  # B
    alignment: Alignment
    levels: Sentence  # that the levels record other calls; no sentence if they do not
    updates: frozenset[int]  # the places in A of updates of optimizers that have a partner
    is_foreign: bool  # whether one side is of PyTorch and the other of MindSpore


def normalised(a: Dump, b: Dump, mapping: Mapping[str, str], by_lines: bool) -> NormalPair:
    """Return two dumps in one form, and their pairs; for ``mapping`` and ``by_lines`` see ``Alignment``."""
    normal = NormalDump(a), NormalDump(b)
    levels = leave_out_unrecorded(*normal)
    is_foreign = are_two(a.header, b.header)
    if is_foreign:
        spell_dtypes(normal[int(a.header["framework"] != PYTORCH)])
    alignment = Alignment(*normal, mapping or None, by_lines=by_lines)
    if is_foreign:
        fit(alignment, *normal)
    else:
        pair_reductions(alignment, *normal)
        Rewiring(alignment).run()
    order_operands(alignment, normal[1], normal[0])
    updates = frozenset(fit_updates(alignment, *normal))
    return NormalPair(*normal, alignment, levels, updates, is_foreign)


def leave_out_unrecorded(a: NormalDump, b: NormalDump) -> Sentence:
    """Leave out calls of a kind that the level of the other dump does not record; return a remark, if one is needed."""
    levels = [dump.header.get("level") for dump in (a, b)]
    if levels[0] == levels[1] or None in levels:
        return NOTHING
    of_a, of_b = _kinds(a), _kinds(b)
    side = "A" if of_b.keys() < of_a.keys() else "B" if of_a.keys() < of_b.keys() else ""
    if not (
        side and of_a and of_b
    ):  # L0 and L1 have hardly a call in common: they cannot be compared
        return NOTHING
    dump, own, other = (a, of_a, of_b) if side == "A" else (b, of_b, of_a)
    names = [name for kind in own.keys() - other.keys() for name in own[kind]]
    for name in names:
        del dump.data[name]
    return say("compare.levels", left=levels[0], right=levels[1], calls=len(names), side=side)


def _kinds(dump: Dump) -> dict[str, list[str]]:
    """Return kind of call -> its names; every level records updates."""
    calls = ((parse(name), name, entry) for name, entry in dump.data.items())
    kinds = (API, CELL, GRADIENT)
    return grouped(
        (it.kind, name)
        for it, name, entry in calls
        if it.kind in kinds and not is_update(it, entry)
    )


_COMMUTATIVE = frozenset(
    (
        "add",
        "iadd",
        "mul",
        "imul",
        "multiply",
        "tensoradd",
        "maximum",
        "minimum",
        "eq",
        "equal",
        "ne",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "and",
        "or",
        "xor",
    )
)
#: how far apart two operands may be that are the same but for noise
_NEAR = 1e-3


def order_operands(alignment: Alignment, b: NormalDump, a: Dump) -> int:
    """Exchange the operands of calls of B where they stand the other way round; return of how many."""
    flow_a, flow_b = alignment.flows
    count = 0
    apis = {parts.api for parts in flow_b.parts}
    commutative = {api for api in apis if api.strip("_").lower() in _COMMUTATIVE}
    for place_a, place_b in alignment.b_of.items():
        if flow_b.parts[place_b].api not in commutative or not flow_b.links[place_b]:
            continue
        entry_a, entry_b = a.data[flow_a.names[place_a]], b.data[flow_b.names[place_b]]
        if not _is_exchanged(_operands(entry_a), _operands(entry_b)):
            continue
        count += 1
        name, other = flow_b.names[place_b], {"input.0": "input.1", "input.1": "input.0"}
        entry_b = b.own(name)
        entry_b["input_args"][:2] = entry_b["input_args"][1::-1]
        b.moved.update({(name, place): own for place, own in other.items()})
        links = (
            link._replace(place=other.get(link.place, link.place)) for link in flow_b.links[place_b]
        )
        flow_b.links[place_b] = tuple(sorted(links))
        backward = flow_b.backward_of(place_b)
        gradients = b.own(flow_b.names[backward]).get("output") if backward is not None else None
        if backward is not None and isinstance(gradients, list) and len(gradients) == 2:
            gradients.reverse()
            name = flow_b.names[backward]
            b.moved.update({(name, "output.0"): "output.1", (name, "output.1"): "output.0"})
    return count


def _operands(entry: Any) -> list[Any]:
    given = entry.get("input_args") if isinstance(entry, dict) else None
    return given[:2] if isinstance(given, list) and len(given) >= 2 else []


def _is_exchanged(a: list[Any], b: list[Any]) -> bool:
    if not a or not b or not all(map(is_tensor, (*a, *b))) or a == b:
        return False
    keys_a, keys_b = [content_key(item) for item in a], [content_key(item) for item in b]
    if keys_a == keys_b[::-1]:
        return keys_a != keys_b
    straight = [distance(a[0], b[0]).rel_l2, distance(a[1], b[1]).rel_l2]
    if None in straight or max(filter(None, straight), default=0.0) <= _NEAR:
        return False
    crossed = [distance(a[0], b[1]).rel_l2, distance(a[1], b[0]).rel_l2]
    return None not in crossed and max(filter(None, crossed), default=0.0) < _NEAR


def spell_dtypes(dump: NormalDump) -> None:
    """Let the records of a dump of PyTorch have MindSpore's dtypes; a norm is never negative."""
    spelled: dict[
        int, Record
    ] = {}  # equal records of a dump are one object, which the opened dump keeps
    for name in dump.data:
        dump.replace_records(name, lambda record: spelled.setdefault(id(record), _spelled(record)))


def _spelled(record: Record) -> Record:
    norm = record.get("Norm")  # msprobe for PyTorch records the element of a 0-d tensor as its norm
    own = (
        {"Norm": abs(norm)} if isinstance(norm, (int, float)) and record.get("shape") == [] else {}
    )
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
            _rename_like(entry, partner)
        elif parts.kind == CELL:
            _rename_like(entry.get("parameters"), partner.get("parameters"))
        elif parts.kind == API and parts.direction == FORWARD:
            one = alignment.is_one_call(*pair)
            moved = _fit_inputs(flows[torch], own, entry, partner.get("input_args") if one else [])
            dumps[torch].moved.update(
                {(flows[torch].names[own], place): old for old, place in moved.items()}
            )


def _rename_like(own: Any, other: Any) -> None:
    if not isinstance(own, dict) or not isinstance(other, dict):
        return
    renamed = {words.parameter_word(str(name), set(other)): value for name, value in own.items()}
    if len(renamed) == len(own):
        own.clear()
        own.update(renamed)


def _fit_inputs(flow: Flow, place: int, entry: dict[str, Any], wanted: Any) -> dict[str, str]:
    """Put tensors of an API where the other side has their sizes, the rest behind; return place on disk -> new one."""
    if not isinstance(wanted, list) or any(
        not is_tensor(item) and isinstance(item, (list, dict)) and "type" not in item
        for item in wanted
    ):
        return {}
    given = [(f"input.{key}", leaf) for key, leaf in leaves(entry.get("input_args"))]
    given += [(f"kwargs.{key}", leaf) for key, leaf in leaves(entry.get("input_kwargs"))]
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
    links = flow.links[place]
    flow.links[place] = tuple(
        it._replace(place=moved.get(it.place, f"kwargs.{it.place}")) for it in links
    )
    return moved


def _fits(given: tuple[str, Any], wanted: Any, number: int) -> bool:
    """Return whether an argument may stand at a place: a tensor of this size, or a plain value that stands there."""
    place, value = given
    if is_tensor(wanted):
        return is_tensor(value) and element_count(value.get("shape")) == element_count(
            wanted.get("shape")
        )
    return not is_tensor(value) and place == f"input.{number}"


def _gap(value: Any, wanted: Any) -> float:
    """Return how far apart an argument is from the one at a place: of several of one size the nearest is taken."""
    found = distance(value, wanted).rel_l2 if is_tensor(wanted) else 0.0
    return math.inf if found is None else found


def fit_updates(alignment: Alignment, a: NormalDump, b: NormalDump) -> list[int]:
    """Bring paired updates to one form, whatever the order and groups of parameters; return their places in A."""
    found = []
    flows = alignment.flows
    for place_a, place_b in alignment.b_of.items():
        if flows[0].parts[place_a].kind != CELL:
            continue
        places = place_a, place_b
        entries = [dump.data[flow.names[place]] for dump, flow, place in zip((a, b), flows, places)]
        if all(
            is_update(flow.parts[place], entry)
            for flow, place, entry in zip(flows, places, entries)
        ):
            found.append(place_a)
            entries = [
                dump.own(flow.names[place]) for dump, flow, place in zip((a, b), flows, places)
            ]
            _rename(entries[1], _new_names(alignment, *entries))
            for entry, flow, place, numbers in zip(entries, flows, places, _numbers(*entries)):
                _name_gradients(entry, flow, place)
                entry["input_kwargs"] = {
                    "parameters": entry["input_kwargs"]["parameters"],
                    **numbers,
                }
    return found


def _new_names(alignment: Alignment, a: dict[str, Any], b: dict[str, Any]) -> dict[str, str]:
    """Return the names in A of parameters that have another one in B: those of a renamed Cell."""
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
        {
            name: record.get("shape")
            for name, record in zip(names, gradients(entry))
            if is_tensor(record)
        }
        for names, entry in ((names_a, a), (names_b, b))
    )
    # without Cells, parameters that only one side has are the same if they have the same shapes in the same order
    rest_a = [name for name in names_a if name not in names_b and name not in made.values()]
    rest_b = [name for name in names_b if name not in names_a and name not in made]
    if [shapes_a.get(name) for name in rest_a] == [shapes_b.get(name) for name in rest_b]:
        made.update(zip(rest_b, rest_a))
    return made


def _rename(entry: dict[str, Any], names: dict[str, str]) -> None:
    if not names:
        return
    given = entry["input_kwargs"]
    for part in (given, *(given.get("groups") or ())):
        own = map(plain, part["parameters"])
        part["parameters"] = [{"type": "str", "value": names.get(name, name)} for name in own]
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
    flow.links[place] = tuple(
        link._replace(place=named.get(link.place, link.place)) for link in flow.links[place]
    )


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
            own[key] = (
                _record(side[key][common[0]])
                if is_one
                else {name: _record(side[key][name]) for name in common}
            )
    return made


def _record(value: float) -> dict[str, Any]:
    return {"type": "float", "value": value}
