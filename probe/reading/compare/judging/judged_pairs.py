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
from probe.reading.compare.pairing.alignment import Pair
from probe.reading.compare.pairing.normal_form import normalised
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
        self.tolerances = Tolerances(list(options.rules), noise, options.factor)
        normal = normalised(a, b, options.mapping, not any(options.layouts))
        self.a = normal.a
        self.b = normal.b
        self.alignment = normal.alignment
        self.levels = normal.levels
        self.updates = normal.updates
        self.pairs = self.alignment.pairs()
        self.arrays: Arrays | None = None
        if options.arrays != "none":
            self.arrays = Arrays(a.path, b.path, options.arrays, options.distance)
        has_arrays = a.header.get("dump_data_dir") or b.header.get("dump_data_dir")
        arrays = self.arrays if has_arrays else None
        # statistics of a transpose are the same
        turned = arrays.turned if arrays else _unturned
        self._judge = Judge(
            self.tolerances,
            arrays.refine if arrays else None,
            turned if normal.is_foreign else None,
        )
        found = floors((self.a, self.b), self.alignment.flows)
        self.slots = [self._judged(pair, found) for pair in self.pairs]
        wrong = before_updates(self.alignment, self.updates, self.pairs, self.slots)
        wrong += Substitutes(self.alignment, self.pairs, self.slots).find()
        self.separate(wrong)  # they are not one call
        #: that one side divides its batch; no sentence if none does
        self.divides = forgive_divided_batches(self.updates, self.pairs, self.slots)

    def _judged(self, pair: Pair, floors: Floors | None) -> list[Slot]:
        if not pair.is_whole:
            return []
        flow_a, flow_b = self.alignment.flows
        name = flow_a.names[pair.a]
        parts = flow_a.parts[pair.a]
        entry_a = self.a.data[name]
        entry_b = self.b.data[flow_b.names[pair.b]]
        floor = NO_FLOOR if floors is None else floors.of(pair)
        slots = self._judge.slots(name, parts, entry_a, entry_b, floor)
        slots = self._judge.follow(name, parts, slots)
        return judge_numbers(slots) if pair.a in self.updates else slots

    def separate(self, places: Collection[int]) -> None:
        """Take pairs apart, by their places in A."""
        if places:
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
