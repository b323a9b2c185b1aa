# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Puts the operands of a commutative call in B into the order that they have in A."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.distances.bounds import distance
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import is_tensor

_COMMUTATIVE = frozenset(
    ("add", "iadd", "mul", "imul", "multiply", "tensoradd", "maximum", "minimum", "eq", "equal", "ne", "not_equal",
     "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "and", "or", "xor")
)  # fmt: skip
#: how far apart two operands may be that are the same but for noise
_NEAR = 1e-3


def order_operands(alignment: Alignment, b: NormalDump, a: Dump) -> int:
    """Exchange the operands of calls of B where they stand the other way round; return of how many.

    Args:
        alignment: the pairs.
        b: B.
        a: A.
    """
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
