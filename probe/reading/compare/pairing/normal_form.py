# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The form in which two dumps are compared: one spelling of dtypes, places and updates. Opened dumps stay as they are.

An entry that needs another form is a new one. Its places on disk are kept, so that "input 0" is input 0 on disk.
Calls that only one level records are left out: they are no difference of the trainings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.distances.bounds import distance
from probe.reading.compare.frameworks.words import PYTORCH, are_two
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.compare.pairing.optimizer_entries import fit_updates
from probe.reading.compare.pairing.reductions import pair_reductions
from probe.reading.compare.pairing.rewiring import Rewiring
from probe.reading.compare.pairing.torch_arguments import fit, spell_dtypes
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, CELL, GRADIENT, parse
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.updates import is_update
from probe.reading.dumps.values import is_tensor


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
    if not (side and of_a and of_b):  # L0 and L1 have hardly a call in common: they cannot be compared
        return NOTHING
    dump, own, other = (a, of_a, of_b) if side == "A" else (b, of_b, of_a)
    names = [name for kind in own.keys() - other.keys() for name in own[kind]]
    for name in names:
        del dump.data[name]
    return say("compare.levels", left=levels[0], right=levels[1], calls=len(names), side=side)


def _kinds(dump: Dump) -> dict[str, list[str]]:
    """Return kind of call -> its names; every level records updates."""
    found: dict[str, list[str]] = {}
    for name, entry in dump.data.items():
        parts = parse(name)
        if parts.kind in (API, CELL, GRADIENT) and not is_update(parts, entry):
            found.setdefault(parts.kind, []).append(name)
    return found


_COMMUTATIVE = frozenset(
    ("add", "iadd", "mul", "imul", "multiply", "tensoradd", "maximum", "minimum", "eq", "equal", "ne", "not_equal",
     "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "and", "or", "xor")
)  # fmt: skip
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
        flow_b.links[place_b] = tuple(
            sorted(link._replace(place=other.get(link.place, link.place)) for link in flow_b.links[place_b])
        )
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
