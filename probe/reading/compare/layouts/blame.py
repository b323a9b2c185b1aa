# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names the ranks whose part of a tensor makes it differ, and faults that only several ranks have, as dumps tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.distances.tolerance import of_dtype
from probe.reading.compare.judging.arrays import UNREADABLE
from probe.reading.compare.judging.exact import rel_l2
from probe.reading.compare.judging.parts import best_order, joined, like_parts
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.layouts import shards
from probe.reading.compare.layouts.groups import LayoutPair, LayoutSource
from probe.reading.compare.layouts.shards import (
    WHOLE,
    agree,
    axis_between,
    has_placements,
    placements_of,
    together,
)
from probe.reading.compare.layouts.side import Place, values
from probe.reading.compare.origins.origin import Kind, Origin
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import CELL, parse
from probe.reading.dumps.updates import GRADIENTS, parameter_names
from probe.reading.dumps.values import COUNTS, Record, has_nonfinite, is_tensor, real

if TYPE_CHECKING:
    from probe.reading.compare.judging.judged_pairs import JudgedPairs

_MOST = 20
#: how exactly a factor is that of a number of ranks
_EXACT = 2e-3
#: kinds of origins of which a factor tells something
_SCALED = (Kind.GRADIENT, Kind.OPTIMIZER, Kind.COMMUNICATION)
_ADDS = ("add", "sub")


class Blame(NamedTuple):
    """The ranks of one side that make a tensor differ."""

    ranks: list[Any]
    said: Sentence  # a part of a sentence about them


class _Site(NamedTuple):
    names: tuple[
        str | None, str | None
    ]  # its entry in A and in B; None where it is on one side only
    slot: Slot | None  # its verdict; None where the origin is of a call as a whole


def name_ranks(origins: Sequence[Origin], comparing: JudgedPairs) -> None:
    """Add the ranks to the origins of a comparison of two layouts; leave those of others as they are."""
    source = comparing.b.folder.source
    if not isinstance(source, LayoutSource):
        return
    if origins:
        _name_ranks(origins, comparing, source.pair)
    source.pair.forget()


def _name_ranks(origins: Sequence[Origin], comparing: JudgedPairs, pair: LayoutPair) -> None:
    sites = [_site(origin, comparing) for origin in origins]
    records: list[dict[Place, list[tuple[Any, Record]]]] = []
    for side in (0, 1):
        wanted = {
            _place(site, side, pair)
            for site in sites[:_MOST]
            if site.slot is not None and site.names[side]
        }
        shares = pair.groups[0].tp > 1 or pair.groups[1].tp > 1
        try:
            records.append(pair.records(side, wanted) if shares else {})
        except UsageError:  # the dump has gone since it was compared
            records.append({})
    for origin, site in zip(origins, sites):
        found = [_blame(site, side, records, pair, comparing) for side in (0, 1)]
        known = [*filter(None, (*(blame.said for blame in found), _named(origin, site, pair)))]
        if known:
            origin.said = clauses(origin.said, say("list", parts=known))
        ranks = found[1].ranks if len(pair.groups[1].ranks) > 1 else found[0].ranks
        if ranks:
            origin.site = origin.site._replace(rank=ranks[0])
            origin.ranks = ranks[1:]


def _place(site: _Site, side: int, pair: LayoutPair) -> Place:
    """Return a tensor as its entry names it: gradients that enter an update stand there by their numbers."""
    name = site.names[side] or ""
    place = site.slot.place if site.slot else ""
    if place.startswith(GRADIENTS) and parse(name).kind == CELL:
        for entry in pair.entries(side, name)[:1]:
            names = parameter_names(entry)
            if place[len(GRADIENTS) :] in names:
                place = f"{GRADIENTS}{names.index(place[len(GRADIENTS) :])}"
    return Place(name, place)


def _named(origin: Origin, site: _Site, pair: LayoutPair) -> Sentence:
    """Return the fault that the origin is, as far as the records tell."""
    side = int(len(pair.groups[1].ranks) > 1)
    name = site.names[side]
    other = site.names[1 - side]
    if site.slot is None or name is None or other is None:
        return NOTHING
    try:
        entries = pair.entries(side, name)
        others = pair.entries(1 - side, other)
    except UsageError:  # the dump has gone since it was compared
        return NOTHING
    return fault(
        origin.kind,
        name,
        (site.slot.a, site.slot.b),
        entries,
        others[0] if others else {},
        pair.counts,
    )


def _site(origin: Origin, comparing: JudgedPairs) -> _Site:
    flow_a, flow_b = comparing.alignment.flows
    place_b = flow_b.position.get(origin.name, NONE)
    place_a = (
        comparing.alignment.a_of.get(place_b, NONE)
        if place_b != NONE
        else flow_a.position.get(origin.name, NONE)
    )
    name_a = flow_a.names[place_a] if place_a != NONE else None
    name_b = flow_b.names[place_b] if place_b != NONE else None
    if name_a is None or name_b is None:
        return _Site((name_a, name_b), None)
    slots = next(
        (found for pair, found in zip(comparing.pairs, comparing.slots) if pair.b == place_b), []
    )
    hard = next((slot for slot in slots if slot.verdict in HARD), None)
    return _Site(
        (name_a, name_b), next((slot for slot in slots if slot.place == origin.place), hard)
    )


def _blame(site: _Site, side: int, records: Any, pair: LayoutPair, comparing: JudgedPairs) -> Blame:
    name = site.names[side]
    group = pair.groups[side]
    letter = "AB"[side]
    stage = pair.stage(side, name) if name else None
    if stage is None or len(group.ranks) == 1:
        return Blame([], NOTHING)
    ranks = [folder.rank for folder in group.stages[stage]]
    general = Blame(ranks, say("compare.on_ranks", ranks=ranks, side=letter))
    if len(ranks) == 1:
        general = Blame(ranks, say("compare.on_rank", rank=ranks[0], side=letter))
    if len(ranks) == 1 or site.slot is None or name is None:
        return general
    own = records[side].get(_place(site, side, pair), [])
    other = records[1 - side].get(_place(site, 1 - side, pair), [])
    if len(own) != len(ranks) or not other:
        return general
    found = _by_layout(own, other) if comparing.arrays else None
    if found is None:
        found = _apart(
            site.slot,
            side,
            [record for _, record in own],
            [record for _, record in other],
            comparing,
        )
    if found is None:
        return Blame(ranks, say("compare.on_which_rank", ranks=ranks, side=letter))
    is_whole = (
        axis_between(own[0][1].get("shape"), (site.slot.a, site.slot.b)[side].get("shape")) == WHOLE
    )
    placements = placements_of(own[0][1])
    placed = say("compare.placed", placements=placements) if placements else NOTHING
    guilty = [ranks[place] for place in found]
    if len(guilty) == 1:
        part = say("compare.value") if is_whole else say("compare.shard")
        return Blame(
            guilty,
            say("compare.rank_differs", rank=guilty[0], part=part, placed=placed, side=letter),
        )
    part = say("compare.values") if is_whole else say("compare.shards")
    return Blame(
        guilty, say("compare.ranks_differ", ranks=guilty, part=part, placed=placed, side=letter)
    )


def _by_layout(own: list[tuple[Any, Record]], other: list[tuple[Any, Record]]) -> list[int] | None:
    """Return the places of the ranks whose arrays are not the parts that their layouts name; None where none is."""
    if len(other) != 1 or not all(has_placements(record) for _, record in own):
        return None
    found = []
    try:
        whole = shards.array_of(other[0][0].path, other[0][1])
        for place, (folder, record) in enumerate(own):
            part = shards.piece(whole, record)
            if part is None:
                return None
            if rel_l2(shards.array_of(folder.path, record), part) > of_dtype(record.get("dtype")):
                found.append(place)
    except UNREADABLE:
        return None
    return found or None


def _apart(
    slot: Slot, side: int, own: list[Record], other: list[Record], comparing: JudgedPairs
) -> list[int] | None:
    """Return the places of the ranks whose records make a tensor differ; None where that is not known."""
    sides = slot.a, slot.b
    axis = axis_between(own[0].get("shape"), sides[side].get("shape"))
    whole = sides[1 - side]
    if axis == WHOLE:
        found = [place for place, record in enumerate(own) if not agree(record, whole)]
        return (
            found
            if len(found) < len(own) or all(agree(own[0], record) for record in own[1:])
            else None
        )
    if axis < 0:
        return _by_bounds(own, whole) or None if all(map(has_placements, own)) else None
    found = _by_arrays(slot, side, axis, comparing)
    return found or _by_blocks(own, other, axis) or _by_bounds(own, whole) or None


def _by_arrays(slot: Slot, side: int, axis: int, comparing: JudgedPairs) -> list[int]:
    """Return the shards whose arrays differ from their pieces of the other side's whole."""
    if comparing.arrays is None:
        return []
    try:
        both = comparing.arrays.parts(slot.a, slot.b)
        own = both[side]
        other = both[1 - side]
        enough = max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))
        blocks = best_order(own, other, axis, rel_l2, enough)
        pieces = like_parts(joined(other, axis, blocks), own, axis, blocks)
        return [
            place
            for place, (part, piece) in enumerate(zip(own, pieces))
            if rel_l2(part, piece) > enough
        ]
    except (*UNREADABLE, KeyError):
        return []


def _by_blocks(own: list[Record], other: list[Record], axis: int) -> list[int]:
    """Return the shards of those blocks that differ, where both sides have shards of the same blocks."""
    count = math.gcd(len(own), len(other))
    size = len(own) // count
    other_size = len(other) // count
    found: list[int] = []
    for block in range(count) if count > 1 else ():
        left = together(own[block * size : (block + 1) * size], axis)
        if not agree(left, together(other[block * other_size : (block + 1) * other_size], axis)):
            found += range(block * size, (block + 1) * size)
    return found


def _by_bounds(own: list[Record], whole: Record) -> list[int]:
    """Return the shards that cannot be parts of a tensor: with a greater Max, Norm or count, or a lesser Min."""
    enough = of_dtype(whole.get("dtype"))
    found = []
    for place, record in enumerate(own):
        numbers = [
            real(side.get(key)) for key in ("Max", "Min", "Norm") for side in (record, whole)
        ]
        known = [number for number in numbers if number is not None]
        if has_nonfinite(record) and not has_nonfinite(whole):
            found.append(place)
        elif len(known) == len(numbers):
            high, most, low, least, norm, all_norm = known
            slack = enough * all_norm
            if high > most + slack or low < least - slack or norm > all_norm + slack:
                found.append(place)
        elif any((real(record.get(key)) or 0) > (real(whole.get(key)) or 0) for key in COUNTS):
            found.append(place)
    return found


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
    factor = _factor(*pair) if kind in _SCALED else None
    if factor is None:
        return NOTHING
    axes = {
        int(size)
        for entry in entries
        for _, leaf in values(entry)
        if _has_layout(leaf)
        for size in leaf["layout"]["mesh"].values()
        if type(size) is int
    }
    for count in sorted({*counts, *axes} - {1}):
        for wanted, key in ((count, "compare.not_divided"), (1 / count, "compare.averaged_twice")):
            if abs(factor - wanted) <= _EXACT * wanted:
                return say(key, count=count)
    return NOTHING


def _factor(a: Any, b: Any) -> float | None:
    """Return the number by which all numbers of A are multiplied in B; None where there is none."""
    if not (is_tensor(a) and is_tensor(b)):
        return None
    found = []
    for key in ("Norm", "Max", "Min"):
        left = real(a.get(key))
        right = real(b.get(key))
        if left is None or right is None or not math.isfinite(left) or not math.isfinite(right):
            return None
        if left:
            found.append(right / left)
        elif right:
            return None
    return (
        found[0]
        if found and all(abs(one - found[0]) <= _EXACT * abs(found[0]) for one in found)
        else None
    )


def _partial_and_replicated(entry: Any) -> str:
    """Return the axis along which one input of a call has terms of a sum, and another one the same on all ranks."""
    layouts = [
        leaf["layout"]
        for place, leaf in values(entry)
        if place.startswith("input") and _has_layout(leaf)
    ]
    for axis in layouts[0].get("mesh", ()) if layouts else ():
        placed = [
            dict(zip(layout["mesh"], layout["placements"])).get(axis, "") for layout in layouts
        ]
        if "Replicate" in placed and any(one.startswith("Partial") for one in placed):
            return str(axis)
    return ""


def _has_layout(leaf: Any) -> bool:
    layout = leaf.get("layout") if is_tensor(leaf) else None
    kinds = {"mesh": dict, "placements": list}
    return isinstance(layout, dict) and all(
        isinstance(layout.get(key), kind) for key, kind in kinds.items()
    )


def _same_norms(entries: Sequence[Any], other: Any) -> bool:
    """Return whether the gradients of each rank together have the norm that all have together on the other side."""
    total = _norm(other)
    return bool(total) and all(abs(_norm(entry) - total) <= _EXACT * total for entry in entries)


def _norm(entry: Any) -> float:
    given = (
        leaf for place, leaf in values(entry) if place.startswith("input.") and is_tensor(leaf)
    )
    return math.hypot(*(real(record.get("Norm")) or 0.0 for record in given))
