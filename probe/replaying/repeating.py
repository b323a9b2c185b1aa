# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Makes one call several times with the same inputs: kernels may give other bytes each time."""

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

#: the contents of memory that a kernel may read or leave unwritten
_PATTERNS = (np.nan, 0.0, 3e38, -1.0, 1e-30)
_SIDE = 384


def repeat(maker: Maker, times: int) -> ReplayResult:
    """Return whether a call gives equal bytes each time, or raise the reason why nobody can tell."""
    outputs, _ = maker.here()
    first = [item and item[0].copy() for item in outputs]
    if maker.notes:
        raise CannotReplayError("replay.stand_in", note=maker.notes[0])
    call = maker.call
    places = [call.places[number] for number, _ in zip(maker.numbers, first)]
    reserved = () if maker.sens else RESERVED.get(plain_name(call.key), ())
    known = {place for place, leaf in zip(call.places, call.expected) if leaf}
    judged = {place for place in places if place in known and place not in reserved}
    held = [array for array in (*maker.arrays, *first) if array is not None]
    sizes = [array.nbytes // 4 + 1 for array in held]
    differing: dict[str, list[Judged]] = {}
    for number in range(1, times):
        _disturb([*sizes, *sizes], number)
        again, _ = maker.here()
        for place, old, item in zip(places, first, again):
            if place not in judged or old is None or item is None:
                continue
            new, _ = item
            if old.tobytes() != new.tobytes():
                differing.setdefault(place, []).append(_apart(place, old, new))
    if not judged:
        raise CannotReplayError("replay.no_array")
    verdicts = []
    for items in differing.values():
        worst = max(items, key=lambda item: (item.off, item.here))
        count = float(len(items))
        verdicts.append(replace(worst, roundings=count, roundings_here=float(times - 1)))
    return ReplayResult(DIFFERS if verdicts else EQUAL, NOTHING, "", verdicts)


def _disturb(sizes: Sequence[int], number: int) -> None:
    """Leave other contents in free memory, and other work on a second stream."""
    import mindspore as ms

    pattern = _PATTERNS[number % len(_PATTERNS)]
    held = [ms.Tensor(np.full(size, pattern, np.float32)) * 1 for size in sizes]
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
    other_bytes = _bytes(old) != _bytes(new)
    is_other = other_bytes.reshape(old.size, -1).any(-1)
    wide: Any = np.complex128 if old.dtype.kind == "c" else np.float64
    before = old.astype(wide)
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(np.abs(before - new.astype(wide)))
        size = float(np.max(np.nan_to_num(np.abs(before)))) or 1.0
    first = int(np.argmax(is_other))
    element = list(map(int, np.unravel_index(first, old.shape)))
    share = float(np.mean(is_other))
    return Judged(place, DIFFERS, float(np.max(off)) / size, share, 1.0, 0.0, element)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
