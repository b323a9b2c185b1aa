# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names the faults that trainings on several ranks have of their own, where the records show one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.layouts.places import values
from probe.reading.compare.origins.origin import COMMUNICATION, GRADIENT_KIND, OPTIMIZER
from probe.reading.dumps import entry_name
from probe.reading.dumps.values import is_tensor, real

#: how exactly a factor is that of a number of ranks
_EXACT = 2e-3
#: kinds of origins of which a factor tells something
_SCALED = (GRADIENT_KIND, OPTIMIZER, COMMUNICATION)
_ADDS = ("add", "sub")


def fault(
    kind: str, name: str, pair: tuple[Any, Any], entries: Sequence[Any], other: Any, counts: Sequence[int]
) -> Sentence:
    """Return a part of a sentence that names the fault of an origin; nothing where the records show none.

    ``pair`` are the records of its tensor in A and in B. ``entries`` are its entry on all ranks of the side that has
    several, ``other`` is that on the other side. ``counts`` are the numbers of ranks that share something.
    """
    if entry_name.parse(name).api.strip("_").lower() in _ADDS and entries:
        axis = _partial_and_replicated(entries[0])
        if axis:
            return say("compare.partial_and_replicate", axis=axis)
    if kind == OPTIMIZER and len(entries) > 1 and _same_norms(entries, other):
        return say("compare.clipped_by_shard")
    factor = _factor(*pair) if kind in _SCALED else None
    axes = {int(size) for entry in entries for _, leaf in values(entry) if _has_layout(leaf)
            for size in leaf["layout"]["mesh"].values() if type(size) is int}  # fmt: skip
    for count in sorted({*counts, *axes} - {1}) if factor is not None else ():
        if _is(factor, count):
            return say("compare.not_divided", count=count)
        if _is(factor, 1 / count):
            return say("compare.averaged_twice", count=count)
    return NOTHING


def _is(factor: float | None, wanted: float) -> bool:
    return factor is not None and abs(factor - wanted) <= _EXACT * wanted


def _factor(a: Any, b: Any) -> float | None:
    """Return the number by which all numbers of A are multiplied in B; None where there is none."""
    if not (is_tensor(a) and is_tensor(b)):
        return None
    found = []
    for key in ("Norm", "Max", "Min"):
        left, right = real(a.get(key)), real(b.get(key))
        if left is None or right is None or not math.isfinite(left) or not math.isfinite(right):
            return None
        if left:
            found.append(right / left)
        elif right:
            return None
    return found[0] if found and all(abs(one - found[0]) <= _EXACT * abs(found[0]) for one in found) else None


def _partial_and_replicated(entry: Any) -> str:
    """Return the axis along which one input of a call has terms of a sum, and another one the same on all ranks."""
    layouts = [leaf["layout"] for place, leaf in values(entry) if place.startswith("input") and _has_layout(leaf)]
    for axis in layouts[0].get("mesh", ()) if layouts else ():
        placed = [dict(zip(layout["mesh"], layout["placements"])).get(axis, "") for layout in layouts]
        if "Replicate" in placed and any(one.startswith("Partial") for one in placed):
            return str(axis)
    return ""


def _has_layout(leaf: Any) -> bool:
    layout = leaf.get("layout") if is_tensor(leaf) else None
    return (
        isinstance(layout, dict) and isinstance(layout.get("mesh"), dict) and isinstance(layout.get("placements"), list)
    )


def _same_norms(entries: Sequence[Any], other: Any) -> bool:
    """Return whether the gradients of each rank together have the norm that all have together on the other side."""
    total = _norm(_gradients(other))
    norms = [_norm(_gradients(entry)) for entry in entries]
    return bool(total) and all(abs(norm - total) <= _EXACT * total for norm in norms)


def _gradients(entry: Any) -> Iterator[Mapping[str, Any]]:
    return (leaf for place, leaf in values(entry) if place.startswith("input.") and is_tensor(leaf))


def _norm(records: Iterator[Mapping[str, Any]]) -> float:
    return math.hypot(*(real(record.get("Norm")) or 0.0 for record in records))
