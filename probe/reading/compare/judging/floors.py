# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The tolerance of the least exact dtype before each call: half precision reaches the float32 behind it."""

from __future__ import annotations

from typing import Any

from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import is_tensor

#: the tolerance of each call in A and in B
Floors = tuple[list[float], list[float]]


def floors(dumps: tuple[Dump, Dump], flows: tuple[Flow, Flow]) -> Floors | None:
    """Return for each call the tolerance of the least exact dtype before it; None where all have one dtype."""
    if len({of_dtype(dtype) for flow in flows for dtype in flow.dtypes} - {0.0}) < 2:
        return None
    return _tolerances(dumps[0], flows[0]), _tolerances(dumps[1], flows[1])


def _inexact(entry: Any) -> float:
    """Return the tolerance of the least exact dtype in an entry."""
    if not isinstance(entry, dict):
        return 0.0
    most = 0.0
    for part in entry.values():
        for item in part if type(part) is list else part.values() if type(part) is dict else ():
            if is_tensor(item):
                most = max(most, of_dtype(item.get("dtype")))
    return most


def _tolerances(dump: Dump, flow: Flow) -> list[float]:
    own = [_inexact(dump.data[name]) for name in flow.names]
    last_backward = 0.0
    for place, links in enumerate(flow.links):
        if flow.parts[place].direction == FORWARD:
            own[place] = max(own[place], max((own[link.producer] for link in links if link.producer >= 0), default=0.0))
        else:
            forward = flow.forward_of(place)
            last_backward = max(last_backward, own[place], own[forward] if forward is not None else 0.0)
            own[place] = last_backward
    return own
