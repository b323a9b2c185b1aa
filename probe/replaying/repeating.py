# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes one call several times, and compares the bytes of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from probe.findings.sentence import NOTHING
from probe.replaying.described import CannotReplayError, ReplayResult
from probe.replaying.evaluating import RESERVED, plain_name
from probe.replaying.judging import DIFFERS, EQUAL, Array, Judged
from probe.replaying.making import Maker

#: what the memory holds that a kernel may read or leave unwritten
_PATTERNS = (np.nan, 0.0, 3e38, -1.0, 1e-30)
_SIDE = 384


def repeat(maker: Maker, times: int) -> ReplayResult:
    """Return whether a call gives equal bytes each time, or raise the reason why nobody can tell."""
    first = [item and item[0].copy() for item in maker.here()[0]]
    if maker.notes:
        raise CannotReplayError("replay.stand_in", note=maker.notes[0])
    places = [maker.call.places[number] for number in (maker.wanted or range(len(first)))]
    expected = [maker.call.expected[number] for number in (maker.wanted or range(len(first)))]
    reserved = () if maker.sens else RESERVED.get(plain_name(maker.call.key), ())
    judged = {place for place, leaf in zip(places, expected) if leaf and place not in reserved}
    found: dict[str, list[Judged]] = {}
    for number in range(1, times):
        _disturb([item.nbytes // 4 + 1 for item in (*maker.arrays, *first) if item is not None] * 2, number)
        for place, old, new in zip(places, first, maker.here()[0]):
            if place in judged and old is not None and new is not None and old.tobytes() != new[0].tobytes():
                found.setdefault(place, []).append(_apart(place, old, new[0]))
    if not judged:
        raise CannotReplayError("replay.no_array")
    outputs = []
    for items in found.values():
        worst = max(items, key=lambda item: (item.off, item.here))
        outputs.append(replace(worst, roundings=float(len(items)), roundings_here=float(times - 1)))
    return ReplayResult(DIFFERS if outputs else EQUAL, NOTHING, "", outputs)


def _disturb(sizes: Sequence[int], number: int) -> None:
    """Leave other contents in free memory, and other work on a second stream."""
    import mindspore as ms

    held = [ms.Tensor(np.full(size, _PATTERNS[number % len(_PATTERNS)], np.float32)) * 1 for size in sizes]
    side = ms.Tensor(np.full((_SIDE, _SIDE), number, np.float32))
    try:
        with ms.runtime.StreamCtx(ms.runtime.Stream()):
            side = ms.ops.matmul(side, side)
    except (AttributeError, RuntimeError, ValueError):  # no second stream here
        side = ms.ops.matmul(side, side)
    ms.runtime.synchronize()
    del held


def _apart(place: str, old: Array, new: Array) -> Judged:
    """Return how far two outputs are apart whose bytes differ; zeros of other signs and other NaN are apart by 0."""
    if old.shape != new.shape or not old.size:
        return Judged(place, DIFFERS, float("inf"), 1.0, 1.0, 0.0, [])
    bits = np.ascontiguousarray(old).reshape(-1).view(np.uint8) != np.ascontiguousarray(new).reshape(-1).view(np.uint8)
    apart = bits.reshape(old.size, -1).any(-1)
    wide: Any = np.complex128 if old.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(np.abs(old.astype(wide) - new.astype(wide)))
        size = float(np.max(np.nan_to_num(np.abs(old.astype(wide))))) or 1.0
    element = [int(place) for place in np.unravel_index(int(np.argmax(apart)), old.shape)]
    return Judged(place, DIFFERS, float(np.max(off)) / size, float(np.mean(apart)), 1.0, 0.0, element)
