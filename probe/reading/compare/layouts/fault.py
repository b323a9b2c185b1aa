# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Faults that only several ranks have, as dumps tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.layouts.entries import values
from probe.reading.compare.layouts.placements import REPLICATE
from probe.reading.compare.origins.origin import Kind
from probe.reading.dumps.entry_name import parse
from probe.reading.dumps.values import is_tensor, real

#: how exactly a factor is that of a number of ranks
_EXACT = 2e-3
#: kinds of origins of which a factor tells something
_SCALED = (Kind.GRADIENT, Kind.OPTIMIZER, Kind.COMMUNICATION)
_ADDS = ("add", "sub")


def fault(
    kind: str,
    name: str,
    pair: tuple[Any, Any],
    entries: Sequence[Any],
    other: Any,
    counts: Sequence[int],
) -> Sentence:
    """Return a part of a sentence that names the fault of an origin; nothing where the records show none.

    ``pair`` are the records of its tensor in A and in B. ``entries`` are its entry on all ranks of the side that has
    several, ``other`` is that on the other side. ``counts`` are the numbers of ranks that share something.
    """
    if parse(name).api.strip("_").lower() in _ADDS and entries:
        axis = _partial_and_replicated(entries[0])
        if axis:
            return say("compare.partial_and_replicate", axis=axis)
    if kind == Kind.OPTIMIZER and len(entries) > 1 and _same_norms(entries, other):
        return say("compare.clipped_by_shard")
    factor = _factor(pair[0], pair[1]) if kind in _SCALED else None
    if factor is None:
        return NOTHING
    for count in sorted({*counts, *_axes(entries)} - {1}):
        for wanted, key in ((count, "compare.not_divided"), (1 / count, "compare.averaged_twice")):
            if abs(factor - wanted) <= _EXACT * wanted:
                return say(key, count=count)
    return NOTHING


def _axes(entries: Sequence[Any]) -> set[int]:
    """Return the lengths of the axes of the meshes that entries name."""
    lengths: set[int] = set()
    for entry in entries:
        for _, leaf in values(entry):
            if _has_layout(leaf):
                sizes = leaf["layout"]["mesh"].values()
                lengths.update(size for size in sizes if type(size) is int)
    return lengths


def _factor(a: Any, b: Any) -> float | None:
    """Return the number by which all numbers of A are multiplied in B; None where there is none."""
    if not (is_tensor(a) and is_tensor(b)):
        return None
    factors: list[float] = []
    for key in ("Norm", "Max", "Min"):
        left = real(a.get(key))
        right = real(b.get(key))
        if left is None or right is None or not math.isfinite(left) or not math.isfinite(right):
            return None
        if left:
            factors.append(right / left)
        elif right:
            return None
    if not factors:
        return None
    first = factors[0]
    is_one = all(abs(factor - first) <= _EXACT * abs(first) for factor in factors)
    return first if is_one else None


def _partial_and_replicated(entry: Any) -> str:
    """Return the axis along which one input of a call has terms of a sum, and another one the same on all ranks."""
    layouts = [
        leaf["layout"]
        for place, leaf in values(entry)
        if place.startswith("input") and _has_layout(leaf)
    ]
    placements = [dict(zip(layout["mesh"], layout["placements"])) for layout in layouts]
    for axis in layouts[0].get("mesh", ()) if layouts else ():
        placed = [own.get(axis, "") for own in placements]
        if REPLICATE in placed and any(text.startswith("Partial") for text in placed):
            return str(axis)
    return ""


def _has_layout(leaf: Any) -> bool:
    layout = leaf.get("layout") if is_tensor(leaf) else None
    if not isinstance(layout, dict):
        return False
    return isinstance(layout.get("mesh"), dict) and isinstance(layout.get("placements"), list)


def _same_norms(entries: Sequence[Any], other: Any) -> bool:
    """Return whether the gradients of each rank together have the norm that all have together on the other side."""
    total = _norm(other)
    return bool(total) and all(abs(_norm(entry) - total) <= _EXACT * total for entry in entries)


def _norm(entry: Any) -> float:
    given = (
        leaf for place, leaf in values(entry) if place.startswith("input.") and is_tensor(leaf)
    )
    return math.hypot(*(real(record.get("Norm")) or 0.0 for record in given))
