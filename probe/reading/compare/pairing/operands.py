# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Exchanges the operands of commutative calls of B that stand the other way round than in A."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.distances.distance import distance
from probe.reading.compare.pairing.alignment import Alignment
from probe.reading.compare.pairing.normal_dump import NormalDump, move_links, sort_links
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.flow import content_key
from probe.reading.dumps.values import Record, is_tensor, part_of

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
_INPUTS = {"input.0": "input.1", "input.1": "input.0"}
_OUTPUTS = {"output.0": "output.1", "output.1": "output.0"}


def order_operands(alignment: Alignment, b: NormalDump, a: Dump) -> int:
    """Exchange the operands of calls of B where they stand the other way round; return of how many."""
    flow_a, flow_b = alignment.flows
    apis = {parts.api for parts in flow_b.parts}
    commutative = {api for api in apis if api.strip("_").lower() in _COMMUTATIVE}
    count = 0
    for place_a, place_b in alignment.b_of.items():
        if flow_b.parts[place_b].api not in commutative or not flow_b.links[place_b]:
            continue
        name = flow_b.names[place_b]
        operands_a = _operands(a.data[flow_a.names[place_a]])
        if not _is_exchanged(operands_a, _operands(b.data[name])):
            continue
        count += 1
        inputs = b.own(name)["input_args"]
        inputs[:2] = inputs[1::-1]
        b.note_moves(name, _INPUTS)
        move_links(flow_b, place_b, _INPUTS)
        sort_links(flow_b, place_b)
        backward = flow_b.backward_of(place_b)
        if backward is not None:
            _exchange_gradients(b, flow_b.names[backward])
    return count


def _exchange_gradients(dump: NormalDump, name: str) -> None:
    gradients = dump.own(name).get("output")
    if isinstance(gradients, list) and len(gradients) == 2:
        gradients.reverse()
        dump.note_moves(name, _OUTPUTS)


def _operands(entry: Any) -> list[Any]:
    given = part_of(entry, "input_args")
    return given[:2] if isinstance(given, list) and len(given) >= 2 else []


def _is_exchanged(a: list[Any], b: list[Any]) -> bool:
    """Return whether two operands are those of the other call, the other way round, but for noise."""
    if not a or not b or a == b:
        return False
    if not all(map(is_tensor, a)) or not all(map(is_tensor, b)):
        return False
    keys_a = [content_key(record) for record in a]
    keys_b = [content_key(record) for record in b]
    if keys_a == keys_b[::-1]:
        return keys_a != keys_b
    straight = _farthest(a, b)
    if straight is None or straight <= _NEAR:
        return False
    crossed = _farthest(a, b[::-1])
    return crossed is not None and crossed < _NEAR


def _farthest(a: list[Record], b: list[Record]) -> float | None:
    """Return the greater distance of two operands from two others; None where one is not known."""
    first = distance(a[0], b[0]).rel_l2
    second = distance(a[1], b[1]).rel_l2
    if first is None or second is None:
        return None
    return max(first, second)
