# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names the ranks whose part of a tensor makes it differ."""

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
from probe.reading.compare.layouts.fault import fault
from probe.reading.compare.layouts.groups import LayoutPair, LayoutSource
from probe.reading.compare.layouts.placements import (
    array_of,
    has_placements,
    piece,
    placements_of,
)
from probe.reading.compare.layouts.shards import WHOLE, agree, axis_between, together
from probe.reading.compare.layouts.side import Place
from probe.reading.compare.origins.origin import Origin
from probe.reading.compare.pairing.alignment import NONE
from probe.reading.dumps.entry_name import CELL, parse
from probe.reading.dumps.updates import GRADIENTS, parameter_names
from probe.reading.dumps.values import COUNTS, Record, has_nonfinite, real

if TYPE_CHECKING:
    from probe.reading.compare.judging.judged_pairs import JudgedPairs

_MOST = 20


class Blame(NamedTuple):
    """The ranks of one side that make a tensor differ."""

    ranks: list[Any]
    said: Sentence  # a part of a sentence about them


class _Site(NamedTuple):
    #: its entry in A and in B; None where it is on one side only
    names: tuple[str | None, str | None]
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
        told = [site for site in sites[:_MOST] if site.slot is not None and site.names[side]]
        wanted = {_place(site, side, pair) for site in told}
        shares = pair.groups[0].tp > 1 or pair.groups[1].tp > 1
        try:
            records.append(pair.records(side, wanted) if shares else {})
        except UsageError:  # the dump has gone since it was compared
            records.append({})
    for origin, site in zip(origins, sites):
        found = [_blame(site, side, records, pair, comparing) for side in (0, 1)]
        told_of = [*(blame.said for blame in found), _named(origin, site, pair)]
        known = list(filter(None, told_of))
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
        parameter = place.removeprefix(GRADIENTS)
        for entry in pair.entries(side, name)[:1]:
            names = parameter_names(entry)
            if parameter in names:
                place = f"{GRADIENTS}{names.index(parameter)}"
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
    records = (site.slot.a, site.slot.b)
    first = others[0] if others else {}
    return fault(origin.kind, name, records, entries, first, pair.counts)


def _site(origin: Origin, comparing: JudgedPairs) -> _Site:
    flow_a, flow_b = comparing.alignment.flows
    place_b = flow_b.position.get(origin.name, NONE)
    if place_b != NONE:
        place_a = comparing.alignment.a_of.get(place_b, NONE)
    else:
        place_a = flow_a.position.get(origin.name, NONE)
    name_a = flow_a.names[place_a] if place_a != NONE else None
    name_b = flow_b.names[place_b] if place_b != NONE else None
    if name_a is None or name_b is None:
        return _Site((name_a, name_b), None)
    slots = [slot for pair, slot in comparing.rows() if pair.b == place_b]
    hard = next((slot for slot in slots if slot.verdict in HARD), None)
    own = next((slot for slot in slots if slot.place == origin.place), hard)
    return _Site((name_a, name_b), own)


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
        own_records = [record for _, record in own]
        other_records = [record for _, record in other]
        found = _apart(site.slot, side, own_records, other_records, comparing)
    if found is None:
        return Blame(ranks, say("compare.on_which_rank", ranks=ranks, side=letter))
    first = own[0][1]
    compared = site.slot.b if side else site.slot.a
    is_whole = axis_between(first.get("shape"), compared.get("shape")) == WHOLE
    placements = placements_of(first)
    placed = say("compare.placed", placements=placements) if placements else NOTHING
    guilty = [ranks[place] for place in found]
    if len(guilty) == 1:
        part = say("compare.value") if is_whole else say("compare.shard")
        facts = {"part": part, "placed": placed, "side": letter}
        return Blame(guilty, say("compare.rank_differs", rank=guilty[0], **facts))
    part = say("compare.values") if is_whole else say("compare.shards")
    facts = {"part": part, "placed": placed, "side": letter}
    return Blame(guilty, say("compare.ranks_differ", ranks=guilty, **facts))


def _by_layout(own: list[tuple[Any, Record]], other: list[tuple[Any, Record]]) -> list[int] | None:
    """Return the places of the ranks whose arrays are not the parts that their layouts name; None where none is."""
    if len(other) != 1 or not all(has_placements(record) for _, record in own):
        return None
    found = []
    try:
        folder, record = other[0]
        whole = array_of(folder.path, record)
        for place, (folder, record) in enumerate(own):
            part = piece(whole, record)
            if part is None:
                return None
            apart = rel_l2(array_of(folder.path, record), part)
            if apart > of_dtype(record.get("dtype")):
                found.append(place)
    except UNREADABLE:
        return None
    return found or None


def _apart(
    slot: Slot, side: int, own: list[Record], other: list[Record], comparing: JudgedPairs
) -> list[int] | None:
    """Return the places of the ranks whose records make a tensor differ; None where that is not known."""
    compared, whole = (slot.b, slot.a) if side else (slot.a, slot.b)
    axis = axis_between(own[0].get("shape"), compared.get("shape"))
    if axis == WHOLE:
        found = [place for place, record in enumerate(own) if not agree(record, whole)]
        is_told = len(found) < len(own) or all(agree(own[0], record) for record in own[1:])
        return found if is_told else None
    if axis < 0:
        return (_by_bounds(own, whole) or None) if all(map(has_placements, own)) else None
    found = _by_arrays(slot, side, axis, comparing)
    return found or _by_blocks(own, other, axis) or _by_bounds(own, whole) or None


def _by_arrays(slot: Slot, side: int, axis: int, comparing: JudgedPairs) -> list[int]:
    """Return the shards whose arrays differ from their pieces of the other side's whole."""
    if comparing.arrays is None:
        return []
    try:
        parts_a, parts_b = comparing.arrays.parts(slot.a, slot.b)
        own, other = (parts_b, parts_a) if side else (parts_a, parts_b)
        enough = max(of_dtype(slot.a.get("dtype")), of_dtype(slot.b.get("dtype")))
        blocks = best_order(own, other, axis, rel_l2, enough)
        pieces = like_parts(joined(other, axis, blocks), own, axis, blocks)
        apart = map(rel_l2, own, pieces)
        return [place for place, gap in enumerate(apart) if gap > enough]
    except (*UNREADABLE, KeyError):
        return []


def _by_blocks(own: list[Record], other: list[Record], axis: int) -> list[int]:
    """Return the shards of those blocks that differ, where both sides have shards of the same blocks."""
    count = math.gcd(len(own), len(other))
    if count == 1:
        return []
    size = len(own) // count
    other_size = len(other) // count
    found: list[int] = []
    for block in range(count):
        start = block * size
        other_start = block * other_size
        left = together(own[start : start + size], axis)
        right = together(other[other_start : other_start + other_size], axis)
        if not agree(left, right):
            found += range(start, start + size)
    return found


def _by_bounds(own: list[Record], whole: Record) -> list[int]:
    """Return the shards that cannot be parts of a tensor: with a greater Max, Norm or count, or a lesser Min."""
    enough = of_dtype(whole.get("dtype"))
    return [place for place, record in enumerate(own) if _is_beyond(record, whole, enough)]


def _is_beyond(record: Record, whole: Record, enough: float) -> bool:
    if has_nonfinite(record) and not has_nonfinite(whole):
        return True
    numbers = [real(record.get(key)) for key in ("Max", "Min", "Norm")]
    bounds = [real(whole.get(key)) for key in ("Max", "Min", "Norm")]
    known = [number for number in (*numbers, *bounds) if number is not None]
    if len(known) < len(numbers) + len(bounds):
        return any((real(record.get(key)) or 0) > (real(whole.get(key)) or 0) for key in COUNTS)
    high, low, norm, most, least, all_norm = known
    slack = enough * all_norm
    return high > most + slack or low < least - slack or norm > all_norm + slack
