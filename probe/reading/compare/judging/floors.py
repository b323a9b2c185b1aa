# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The least tolerance of each call, of the least exact dtype before it: half precision reaches the float32 behind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.pairing.partners import Pair
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import is_tensor


class Floors(NamedTuple):
    """The least tolerance of each call."""

    a: list[float]  # by its place in A
    b: list[float]  # by its place in B

    def of(self, pair: Pair) -> tuple[float, float]:
        """Return those of two partners."""
        return self.a[pair.a], self.b[pair.b]


def floors(dumps: tuple[Dump, Dump], flows: tuple[Flow, Flow]) -> Floors | None:
    """Return for each call the tolerance of the least exact dtype before it; None where all have one dtype."""
    flow_a, flow_b = flows
    tolerances = set(map(of_dtype, flow_a.dtypes | flow_b.dtypes))
    if len(tolerances - {0.0}) < 2:
        return None
    dump_a, dump_b = dumps
    return Floors(_tolerances(dump_a, flow_a), _tolerances(dump_b, flow_b))


def _tolerances(dump: Dump, flow: Flow) -> list[float]:
    own = [_inexact(dump.data[name]) for name in flow.names]
    last_backward = 0.0
    for place, links in enumerate(flow.links):
        if flow.parts[place].direction == FORWARD:
            given = [own[link.producer] for link in links if link.producer >= 0]
            own[place] = max([own[place], *given])
        else:
            forward = flow.forward_of(place)
            of_forward = 0.0 if forward is None else own[forward]
            last_backward = max(last_backward, own[place], of_forward)
            own[place] = last_backward
    return own


def _inexact(entry: Any) -> float:
    """Return the tolerance of the least exact dtype in an entry."""
    most = 0.0
    for part in entry.values() if isinstance(entry, dict) else ():
        for value in _values(part):
            if is_tensor(value):
                most = max(most, of_dtype(value.get("dtype")))
    return most


def _values(part: Any) -> Iterable[Any]:
    if type(part) is list:
        return part
    return part.values() if type(part) is dict else ()
