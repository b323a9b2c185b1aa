# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps, judges each place of each pair, and sets aside what blames nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from probe.reading.compare.distances.distance import Distance
from probe.reading.compare.distances.tolerances import Tolerances
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.divided_batches import forgive_divided_batches
from probe.reading.compare.judging.floors import Floors, floors
from probe.reading.compare.judging.judge import NO_FLOOR, Judge
from probe.reading.compare.judging.substitutes import Substitutes, before_updates
from probe.reading.compare.judging.updates import judge_numbers
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.normal_form import normalised
from probe.reading.compare.pairing.partners import Pair
from probe.reading.dumps.dump import Dump


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
        self.arrays: Arrays | None = None
        if options.arrays != "none":
            self.arrays = Arrays(a.path, b.path, options.arrays, options.distance)
        self._judge = self._new_judge(a, b, normal.is_foreign)
        dumps = (self.a, self.b)
        least = floors(dumps, self.alignment.flows)
        self.slots = [self._judged(pair, least) for pair in self.pairs]
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

    def _judged(self, pair: Pair, floors: Floors | None) -> list[Slot]:
        if not pair.is_whole:
            return []
        flow_a, flow_b = self.alignment.flows
        name = flow_a.names[pair.a]
        name_b = flow_b.names[pair.b]
        parts = flow_a.parts[pair.a]
        entry_a = self.a.data[name]
        entry_b = self.b.data[name_b]
        floor = NO_FLOOR if floors is None else floors.of(pair)
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

    def release(self) -> None:
        """Drop the entries, which refer to each other: their memory is free at once, without the garbage collector."""
        self.a.release()
        self.b.release()

    def rows(self) -> Iterator[tuple[Pair, Slot]]:
        """Yield every place of every pair; calls without a partner have none."""
        for pair, slots in zip(self.pairs, self.slots):
            for slot in slots:
                yield pair, slot


def _unturned(a: Any, b: Any, found: Distance) -> Distance:
    return found
