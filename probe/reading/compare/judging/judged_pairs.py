# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps and judges each place of each pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.reading.compare.distances.bounds import Distance
from probe.reading.compare.distances.tolerance import Tolerances
from probe.reading.compare.judging.apart import before_updates, forgive_divided_batches, separate
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.floors import Floors, floors
from probe.reading.compare.judging.judge import NO_FLOOR, Judge
from probe.reading.compare.judging.optimizer_numbers import judge_numbers
from probe.reading.compare.judging.substitutes import Substitutes
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.alignment import NONE, Pair
from probe.reading.compare.pairing.normal_form import normalised
from probe.reading.dumps.dump import Dump


class Options(NamedTuple):
    """The settings of a comparison.

    Attributes:
        mapping: names in A -> names in B.
        rules: (pattern, condition) of the user.
        noise: folder -> tensor -> rel_l2 between two golden runs, by (step, rank) of A.
        factor: by how much tolerances are multiplied.
        arrays: "all", "differs" or "none": which arrays are read.
        rows: (file, form) that the rows of this unit are written to: "csv", "jsonl" or "msprobe".
        layouts: the parallel layouts of A and B as the user gives them; "" takes the one in the header.
    """

    mapping: dict[str, str] = {}  # noqa: RUF012
    rules: tuple[tuple[str, str], ...] = ()
    noise: dict[Any, dict[str, float]] = {}  # noqa: RUF012
    factor: float = 1.0
    arrays: str = "all"
    rows: tuple[tuple[str, str], ...] = ()
    layouts: tuple[str, str] = ("", "")


class JudgedPairs:
    """Compares two dumps of one step and rank.

    Args:
        a: A (golden).
        b: B.
        options: the settings.

    Attributes:
        a: A in the form in which it is compared.
        b: B, likewise.
        levels: that the levels record other calls; no sentence if they do not.
        updates: the places in A of updates of optimizers that have a partner.
        divides: that one side divides its batch; no sentence if none does.
        arrays: the arrays of both dumps; None where none may be read.
    """

    def __init__(self, a: Dump, b: Dump, options: Options) -> None:
        self.tolerances = Tolerances(list(options.rules), options.noise.get((a.step, a.rank)), options.factor)
        normal = normalised(a, b, options.mapping, not any(options.layouts))
        self.a, self.b, self.alignment, self.levels, self.updates, is_foreign = normal
        self.pairs = self.alignment.pairs()
        self.arrays = None if options.arrays == "none" else Arrays(a.path, b.path, options.arrays)
        arrays = self.arrays if a.header.get("dump_data_dir") or b.header.get("dump_data_dir") else None
        turned = arrays.turned if arrays else _unknown_arrays
        self._judge = Judge(self.tolerances, arrays.refine if arrays else None, turned if is_foreign else None)
        found = floors((self.a, self.b), self.alignment.flows)
        self.slots = [self._judged(pair, found) for pair in self.pairs]
        self._separate()
        self.divides = forgive_divided_batches(self.updates, self.pairs, self.slots)

    def _judged(self, pair: Pair, floors: Floors | None) -> list[Slot]:
        flow_a, flow_b = self.alignment.flows
        if NONE in (pair.a, pair.b):
            return []
        name = flow_a.names[pair.a]
        entries = self.a.data[name], self.b.data[flow_b.names[pair.b]]
        floor = (floors[0][pair.a], floors[1][pair.b]) if floors is not None else NO_FLOOR
        slots = self._judge.follow(name, self._judge.slots(name, flow_a.parts[pair.a], *entries, floor))
        return judge_numbers(slots) if pair.a in self.updates else slots

    def _separate(self) -> None:
        """Take pairs apart that are not one call."""
        wrong = before_updates(self.alignment, self.updates, self.pairs, self.slots)
        wrong += Substitutes(self.alignment, self.pairs, self.slots).find()
        if wrong:
            separate(self.alignment, wrong)
            known = {(pair.a, pair.b): slots for pair, slots in zip(self.pairs, self.slots)}
            self.pairs = self.alignment.pairs()
            self.slots = [known.get((pair.a, pair.b), []) for pair in self.pairs]

    def rows(self) -> Iterator[tuple[Pair, Slot | None]]:
        """Yield every place of every pair; calls without a partner have none."""
        for pair, slots in zip(self.pairs, self.slots):
            if not slots:
                yield pair, None
            for slot in slots:
                yield pair, slot


def _unknown_arrays(a: Any, b: Any, found: Distance) -> Distance:
    """Return the distance that statistics tell: those of a transpose are the same."""
    return found
