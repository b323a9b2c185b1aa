# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names the ranks whose part of a tensor makes it differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from probe.errors import UsageError
from probe.findings.sentence import NOTHING, Sentence, clauses, say
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.layouts.apart import Share, ranks_apart
from probe.reading.compare.layouts.fault import fault
from probe.reading.compare.layouts.layout_pair import LayoutPair, LayoutSource
from probe.reading.compare.layouts.placements import placements_of
from probe.reading.compare.layouts.shards import WHOLE, axis_between
from probe.reading.compare.layouts.side import Place
from probe.reading.compare.origins.origin import Origin
from probe.reading.compare.pairing.partners import NONE
from probe.reading.dumps.entry_name import CELL, parse
from probe.reading.dumps.updates import GRADIENTS, parameter_names

if TYPE_CHECKING:
    from probe.reading.compare.judging.judged_pairs import JudgedPairs

#: the tensor of an entry -> its records on the ranks that share it
_Shares = dict[Place, list[Share]]
#: so many origins have their records read
_MOST = 20


class Blame(NamedTuple):
    """The ranks of one side that make a tensor differ."""

    ranks: list[Any]
    said: Sentence  # a part of a sentence about them


class _Site(NamedTuple):
    #: its entry in A and in B; None where it is on one side only
    names: tuple[str | None, str | None]
    slot: Slot | None  # its verdict; None where the origin is of a call as a whole


def with_ranks(origins: Sequence[Origin], judged: JudgedPairs) -> dict[Origin, Origin]:
    """Return origins of a comparison of two layouts, each with the same one that has its ranks; else nothing."""
    source = judged.b.folder.source
    if not isinstance(source, LayoutSource):
        return {}
    found = _with_ranks(origins, judged, source.pair) if origins else {}
    source.pair.forget()
    return found


def _with_ranks(
    origins: Sequence[Origin], judged: JudgedPairs, pair: LayoutPair
) -> dict[Origin, Origin]:
    sites = [_site(origin, judged) for origin in origins]
    has_shares = pair.groups[0].tp > 1 or pair.groups[1].tp > 1
    shares = [_read_shares(sites[:_MOST], side, pair) if has_shares else {} for side in (0, 1)]
    has_ranks_in_b = len(pair.groups[1].ranks) > 1
    found: dict[Origin, Origin] = {}
    for origin, site in zip(origins, sites):
        of_a = _blame(site, 0, shares, pair, judged)
        of_b = _blame(site, 1, shares, pair, judged)
        parts = [part for part in (of_a.said, of_b.said, _fault(origin, site, pair)) if part]
        told = origin
        if parts:
            told = replace(told, said=clauses(told.said, say("list", parts=parts)))
        ranks = of_b.ranks if has_ranks_in_b else of_a.ranks
        if ranks:
            told = replace(told, site=told.site._replace(rank=ranks[0]), ranks=ranks[1:])
        found[origin] = told
    return found


def _read_shares(sites: Sequence[_Site], side: int, pair: LayoutPair) -> _Shares:
    """Return the records of the tensors of origins on all ranks of a side."""
    told = [site for site in sites if site.slot is not None and site.names[side]]
    wanted = {_place(site, side, pair) for site in told}
    try:
        return pair.records(side, wanted)
    except UsageError:  # the dump has gone since it was compared
        return {}


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


def _fault(origin: Origin, site: _Site, pair: LayoutPair) -> Sentence:
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


def _site(origin: Origin, judged: JudgedPairs) -> _Site:
    flow_a, flow_b = judged.alignment.flows
    place_b = flow_b.position.get(origin.name, NONE)
    if place_b != NONE:
        place_a = judged.alignment.a_of.get(place_b, NONE)
    else:
        place_a = flow_a.position.get(origin.name, NONE)
    name_a = flow_a.names[place_a] if place_a != NONE else None
    name_b = flow_b.names[place_b] if place_b != NONE else None
    if name_a is None or name_b is None:
        return _Site((name_a, name_b), None)
    slots = [slot for pair, slot in judged.rows() if pair.b == place_b]
    for slot in slots:
        if slot.place == origin.place:
            return _Site((name_a, name_b), slot)
    first_hard = next((slot for slot in slots if slot.is_hard), None)
    return _Site((name_a, name_b), first_hard)


def _blame(
    site: _Site, side: int, shares: list[_Shares], pair: LayoutPair, judged: JudgedPairs
) -> Blame:
    """Return the ranks of one side that make a tensor differ, as exactly as their records tell."""
    name = site.names[side]
    group = pair.groups[side]
    letter = "AB"[side]
    stage = pair.stage(side, name) if name else None
    if stage is None or len(group.ranks) == 1:
        return Blame([], NOTHING)
    ranks = [folder.rank for folder in group.stages[stage]]
    if len(ranks) == 1:
        return Blame(ranks, say("compare.on_rank", rank=ranks[0], side=letter))
    general = Blame(ranks, say("compare.on_ranks", ranks=ranks, side=letter))
    if site.slot is None:
        return general
    own = shares[side].get(_place(site, side, pair), [])
    other = shares[1 - side].get(_place(site, 1 - side, pair), [])
    if len(own) != len(ranks) or not other:
        return general
    apart = ranks_apart(site.slot, side, own, other, judged)
    if apart is None:
        return Blame(ranks, say("compare.on_which_rank", ranks=ranks, side=letter))
    compared = site.slot.b if side else site.slot.a
    guilty = [ranks[place] for place in apart]
    return _blame_of(guilty, own[0].record, compared, letter)


def _blame_of(guilty: list[Any], record: Any, compared: Any, letter: str) -> Blame:
    """Return the ranks with a sentence; ``record`` is that of the first rank, ``compared`` that of the whole."""
    is_whole = axis_between(record.get("shape"), compared.get("shape")) == WHOLE
    placements = placements_of(record)
    placed = say("compare.placed", placements=placements) if placements else NOTHING
    facts = {"placed": placed, "side": letter}
    if len(guilty) == 1:
        part = say("compare.value") if is_whole else say("compare.shard")
        return Blame(guilty, say("compare.rank_differs", rank=guilty[0], part=part, **facts))
    part = say("compare.values") if is_whole else say("compare.shards")
    return Blame(guilty, say("compare.ranks_differ", ranks=guilty, part=part, **facts))
