# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps, judges each place of each pair, and sets aside what blames nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.divided_batches import forgive_divided_batches
from probe.reading.compare.judging.exchanged_calls import exchanged_calls
from probe.reading.compare.judging.floors import floors
from probe.reading.compare.judging.judge import NO_FLOOR, Judge
from probe.reading.compare.judging.substitutes import Substitutes, before_updates
from probe.reading.compare.judging.updates import judge_numbers
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.call_content import equal_calls
from probe.reading.compare.pairing.normal_form import normalised
from probe.reading.compare.pairing.partners import MOVED, NONE, Pair
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import API, BACKWARD, FORWARD
from probe.reading.dumps.flow import Flow


class Options(NamedTuple):
    """The settings of a comparison."""

    #: names in A -> names in B
    mapping: dict[str, str] = {}  # noqa: RUF012
    rules: tuple[tuple[str, str], ...] = ()  # (pattern, condition) of the user
    #: folder -> tensor -> rel_l2 between two golden runs, by (step, rank) of A
    noise: dict[Any, dict[str, float]] = {}  # noqa: RUF012
    factor: float = 1.0  # by how much tolerances are multiplied
    arrays: str = "all"  # "all", "differs" or "none": which arrays are read
    #: (file, form) that the rows of this unit are written to: "csv", "jsonl" or "msprobe"
    rows: tuple[tuple[str, str], ...] = ()
    #: the parallel layouts of A and B as the user gives them; "" takes the one in the header
    layouts: tuple[str, str] = ("", "")
    distance: str = ""  # the user's own, "module:function"


class JudgedPairs:
    """Compares two dumps of one step and rank; ``arrays`` is None where none may be read."""

    def __init__(self, a: Dump, b: Dump, options: Options) -> None:
        noise = options.noise.get((a.step, a.rank))
        rules = list(options.rules)
        self.tolerances = Tolerances(rules, noise, options.factor)
        has_layouts = any(options.layouts)
        normal = normalised(a, b, options.mapping, by_lines=not has_layouts)
        self.a = normal.a
        self.b = normal.b
        self.alignment = normal.alignment
        self.levels = normal.levels
        self.updates = normal.updates
        self.pairs = self.alignment.pairs()
        #: side -> the places of calls in regions that are another form of one thing
        self.formed: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
        self.arrays: Arrays | None = None
        if options.arrays != "none":
            self.arrays = Arrays(a.path, b.path, options.arrays, options.distance)
        self._judge = self._new_judge(a, b, normal.is_foreign)
        dumps = (self.a, self.b)
        self._floors = floors(dumps, self.alignment.flows)
        self.slots = [self._judged(pair) for pair in self.pairs]
        self._exchange(exchanged_calls(self.alignment, self.pairs, self.slots))
        no_partners = before_updates(self.alignment, self.updates, self.pairs, self.slots)
        no_partners += Substitutes(self.alignment, self.pairs, self.slots).find()
        self.separate(no_partners)
        #: that one side divides its batch; no sentence if none does
        self.divides = forgive_divided_batches(self.updates, self.pairs, self.slots)

    def _new_judge(self, a: Dump, b: Dump, is_foreign: bool) -> Judge:
        has_arrays = a.header.get("dump_data_dir") or b.header.get("dump_data_dir")
        if self.arrays is None or not has_arrays:
            # statistics of a transpose are the same
            return Judge(self.tolerances, None, _unturned if is_foreign else None)
        turned = self.arrays.turned if is_foreign else None
        return Judge(self.tolerances, self.arrays.refine, turned)

    def _judged(self, pair: Pair) -> list[Slot]:
        if not pair.is_whole:
            return []
        flow_a, flow_b = self.alignment.flows
        name = flow_a.names[pair.a]
        name_b = flow_b.names[pair.b]
        parts = flow_a.parts[pair.a]
        entry_a = self.a.data[name]
        entry_b = self.b.data[name_b]
        floor = NO_FLOOR if self._floors is None else self._floors.of(pair)
        slots = self._judge.slots(name, parts, entry_a, entry_b, floor)
        slots = self._judge.follow(name, parts, slots)
        return judge_numbers(slots) if pair.a in self.updates else slots

    def separate(self, places: Collection[int]) -> None:
        """Take pairs apart, by their places in A."""
        if not places:
            return
        self.alignment.separate_calls(places)
        known = {pair.places: slots for pair, slots in zip(self.pairs, self.slots)}
        self.pairs = self.alignment.pairs()
        self.slots = [known.get(pair.places, []) for pair in self.pairs]

    def pair_anew(self, places: frozenset[int], others: frozenset[int]) -> None:
        """Take the pairs apart that differ in regions of another form; pair calls by their contents, in any order.

        ``places`` are those of the regions in A, and ``others`` those in B.
        """
        self.formed = (places, others)
        alignment = self.alignment
        for place in self._wrong_pairs(places, others):
            if place in alignment.b_of:  # else it went with its forward
                alignment.separate_calls([place])
        flow_a, flow_b = alignment.flows
        free_a = [a for a in sorted(places) if a not in alignment.b_of and _is_api(flow_a, a)]
        free_b = [b for b in sorted(others) if b not in alignment.a_of and _is_api(flow_b, b)]
        found = [
            (a, b)
            for a, b in equal_calls(alignment.flows, alignment.entry, free_a, free_b)
            if (flow_a.backward_of(a) is None) == (flow_b.backward_of(b) is None)
        ]
        alignment.pair_every(found, MOVED)
        alignment.pair_backwards()
        self._judge_anew()
        off = self._differing()
        own = ((a, flow_a.backward_of(a)) for a, _ in found)
        self.separate([a for a, backward in own if not off.isdisjoint((a, backward))])

    def _exchange(self, partners: Collection[tuple[int, int]]) -> None:
        """Pair calls with other calls than before."""
        if not partners:
            return
        self.alignment.separate_calls([a for a, _ in partners])
        self.alignment.pair_every(partners, MOVED)
        self.alignment.pair_backwards()
        self._judge_anew()

    def _judge_anew(self) -> None:
        """Judge the pairs that were not there before."""
        known = {pair.places: slots for pair, slots in zip(self.pairs, self.slots)}
        self.pairs = self.alignment.pairs()
        self.slots = [
            known[pair.places] if pair.places in known else self._judged(pair)
            for pair in self.pairs
        ]

    def _wrong_pairs(self, places: Collection[int], others: Collection[int]) -> list[int]:
        """Return the places in A of the pairs of a region that differ, or whose backwards do, or lack a partner."""
        flow_a, flow_b = self.alignment.flows
        off = self._differing()
        found: set[int] = set()
        for place in places:
            forward = flow_a.forward_of(place) if _is_backward(flow_a, place) else None
            if place in off or (forward is not None and place not in self.alignment.b_of):
                found.add(place if forward is None else forward)
        for place in others:
            partner = self.alignment.a_of.get(place, NONE)
            if partner in off and partner not in places:
                found.add(partner)  # a call of the region with one that stands outside of it
            forward = flow_b.forward_of(place) if _is_backward(flow_b, place) else None
            if forward is not None and place not in self.alignment.a_of:
                found.add(self.alignment.a_of.get(forward, NONE))
        return sorted(found - {NONE})

    def _differing(self) -> set[int]:
        """Return the places in A of pairs with a difference."""
        found: set[int] = set()
        for pair, slots in zip(self.pairs, self.slots):
            if pair.is_whole and not HARD.isdisjoint([slot.verdict for slot in slots]):
                found.add(pair.a)
        return found

    def release(self) -> None:
        """Drop the entries, which refer to each other: their memory is free at once, without the garbage collector."""
        self.a.release()
        self.b.release()

    def rows(self) -> Iterator[tuple[Pair, Slot]]:
        """Yield every place of every pair; calls without a partner have none."""
        for pair, slots in zip(self.pairs, self.slots):
            for slot in slots:
                yield pair, slot


def _is_api(flow: Flow, place: int) -> bool:
    parts = flow.parts[place]
    return parts.kind == API and parts.direction == FORWARD


def _is_backward(flow: Flow, place: int) -> bool:
    return flow.parts[place].direction == BACKWARD


def _unturned(a: Any, b: Any, found: Distance) -> Distance:
    return found
