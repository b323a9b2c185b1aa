# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""How the errors of the worst arrays are spread: counts of elements by the logarithm of their relative error."""

from __future__ import annotations

from typing import Any

from probe.errors import UsageError
from probe.reading.compare.judging.judged_pairs import JudgedPairs
from probe.reading.compare.judging.verdicts import HARD
from probe.reading.report.part import Part

#: bins from 1e-12 to 1e0; the first holds all that is less, the last all that is more, and NaN
BINS = 24
_LOWEST, _HIGHEST = -12.0, 0.0
_MOST, _MOST_ELEMENTS = 6, 1 << 24


def add_histograms(part: Part, comparing: JudgedPairs) -> None:
    """Add the histograms of the arrays that differ first, and of those that differ most, in one step of one rank."""
    if not (comparing.a.header.get("dump_data_dir") and comparing.b.header.get("dump_data_dir")):
        return
    found = []
    row = 0
    for pair, slots in zip(comparing.pairs, comparing.slots):
        if not slots and -1 in (pair.a, pair.b):
            side, place = (0, pair.a) if pair.b == -1 else (1, pair.b)
            dump = (comparing.a, comparing.b)[side]
            row += sum(1 for _ in dump[comparing.alignment.flows[side].names[place]].tensors())
        for slot in slots:
            if slot.verdict in HARD and slot.distance.exact:
                found.append((slot.distance.rel_l2 or 0.0, row, pair, slot.place))
            row += 1
    flow_a, flow_b = comparing.alignment.flows
    worst = sorted(found, key=lambda item: -item[0])[:_MOST]
    for _, number, pair, where in {item[1]: item for item in (*found[:_MOST], *worst)}.values():
        left = _array(comparing.a, flow_a.names[pair.a], where)
        right = _array(comparing.b, flow_b.names[pair.b], where)
        counts = None if left is None or right is None else histogram(left, right)
        if counts:
            part.extras.histograms[number] = counts


def _array(dump: Any, name: str, place: str) -> Any:
    for tensor in dump[name].tensors():
        if tensor.place == place:
            try:
                return tensor.array()
            except UsageError:
                return None
    return None


def histogram(a: Any, b: Any) -> list[int] | None:
    """Return the counts of elements by the logarithm of their error relative to the root mean square of A.

    >>> import numpy as np
    >>> sum(histogram(np.ones(5), np.ones(5) * 1.01))
    5
    """
    import numpy as np

    if a.size != b.size or not 0 < a.size <= _MOST_ELEMENTS or a.dtype.kind == "c" or b.dtype.kind == "c":
        return None
    x, y = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = float(np.sqrt(np.nanmean(np.square(x[np.isfinite(x)])))) if np.isfinite(x).any() else 0.0
        error = np.log10(np.abs(y - x) / (scale or 1.0))
    error = np.where(np.isnan(error), _HIGHEST, error)
    places = np.clip((error - _LOWEST) * BINS / (_HIGHEST - _LOWEST), 0, BINS - 1).astype(int)
    return [int(count) for count in np.bincount(places, minlength=BINS)]
