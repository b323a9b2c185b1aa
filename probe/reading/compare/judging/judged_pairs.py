# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs the calls of two dumps and judges each place of each pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from probe.findings.sentence import NOTHING, Sentence, say
from probe.reading.compare.distances.bounds import Distance
from probe.reading.compare.distances.tolerance import Tolerances, of_dtype
from probe.reading.compare.frameworks.words import PYTORCH, are_two
from probe.reading.compare.judging.arrays import Arrays
from probe.reading.compare.judging.judge import Judge
from probe.reading.compare.judging.optimizer_numbers import batches, enters_equal, judge_numbers, of_other_batch
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Alignment, Pair
from probe.reading.compare.pairing.levels import leave_out_unrecorded
from probe.reading.compare.pairing.operands import order_operands
from probe.reading.compare.pairing.optimizer_entries import fit_updates
from probe.reading.compare.pairing.reductions import pair_reductions
from probe.reading.compare.pairing.rewiring import Rewiring
from probe.reading.compare.pairing.torch_arguments import fit, spell_dtypes
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.entry_name import FORWARD
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.values import is_tensor

#: the entries of a dump by name
Entries = dict[str, Any]
#: the tolerance of each call in A and in B
Floors = tuple[list[float], list[float]]


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
        levels: that the levels record other calls; no sentence if they do not.
        updates: the places in A of updates of optimizers that have a partner.
        divides: that one side divides its batch; no sentence if none does.
        arrays: the arrays of both dumps; None where none may be read.
    """

    def __init__(self, a: Dump, b: Dump, options: Options) -> None:
        self.a, self.b, self._options = a, b, options
        self.tolerances = Tolerances(list(options.rules), options.noise.get((a.step, a.rank)), options.factor)
        self.levels = leave_out_unrecorded(a, b)
        is_foreign = are_two(a.header, b.header)
        if is_foreign:
            spell_dtypes(a if a.header["framework"] == PYTORCH else b)
        self.alignment = Alignment(a, b, options.mapping or None, by_lines=not any(options.layouts))
        if is_foreign:
            fit(self.alignment, a, b)
        else:
            pair_reductions(self.alignment, a, b)
            Rewiring(self.alignment, a, b).run()
        order_operands(self.alignment, b, a)
        self.updates = frozenset(fit_updates(self.alignment, a, b))
        self.pairs = self.alignment.pairs()
        self.arrays = None if options.arrays == "none" else Arrays(a.path, b.path, options.arrays)
        arrays = self.arrays if a.header.get("dump_data_dir") or b.header.get("dump_data_dir") else None
        turned = arrays.turned if arrays else _unknown_arrays
        judge = Judge(self.tolerances, arrays.refine if arrays else None, turned if is_foreign else None)
        floors, data = self._floors(), (a.data, b.data)
        self.slots = [self._judged(judge, pair, data, floors) for pair in self.pairs]
        self._separate_before_updates()
        self.divides = self._forgive_divided_batches()

    def _judged(self, judge: Judge, pair: Pair, data: tuple[Entries, Entries], floors: Floors | None) -> list[Slot]:
        flow_a, flow_b = self.alignment.flows
        if NONE in (pair.a, pair.b):
            return []
        name = flow_a.names[pair.a]
        entries = data[0][name], data[1][flow_b.names[pair.b]]
        if floors is None:
            slots = judge.follow(name, judge.slots(name, flow_a.parts[pair.a], *entries))
        else:
            floor = floors[0][pair.a], floors[1][pair.b]
            slots = judge.follow(name, judge.slots(name, flow_a.parts[pair.a], *entries, floor))
        return judge_numbers(slots) if pair.a in self.updates else slots

    def _separate_before_updates(self) -> None:
        """Take apart calls between gradients and optimizer that differ though what enters the optimizer agrees.

        They do one thing by other calls: a / 2 + b / 2, and (a + b) / 2.
        """
        wrong: list[int] = []
        for place, pair in enumerate(self.pairs):
            if pair.a not in self.updates or NONE in pair[:2] or not enters_equal(self.slots[place]):
                continue
            for before in range(place - 1, -1, -1):
                a, b, _ = self.pairs[before]
                if self.alignment.flows[int(a == NONE)].parts[b if a == NONE else a].direction != FORWARD:
                    break
                if a not in self.updates and any(slot.verdict in HARD for slot in self.slots[before]):
                    wrong.append(a)
        for a in wrong:
            self.alignment.separate(a)
        if wrong:
            known = {(pair.a, pair.b): slots for pair, slots in zip(self.pairs, self.slots)}
            self.pairs = self.alignment.pairs()
            self.slots = [known.get((pair.a, pair.b), []) for pair in self.pairs]

    def _forgive_divided_batches(self) -> Sentence:
        """Blame nobody where one side divides its batch into more passes, and the optimizer gets the same gradients."""
        updates = [place for place, pair in enumerate(self.pairs) if pair.a in self.updates and pair.b != NONE]
        if not updates or not all(enters_equal(self.slots[place]) for place in updates):
            return NOTHING
        rows = batches(self.slots)
        side = int(rows[0] > rows[1])  # that divides: it has calls that the other has not
        if 0 in rows or not any(pair[1 - side] == NONE for pair in self.pairs):
            return NOTHING
        for place, slots in enumerate(self.slots):
            if place not in updates:
                self.slots[place] = of_other_batch(slots)
        return say("compare.divides", side="AB"[side], rows=max(rows), own=min(rows))

    def _floors(self) -> Floors | None:
        """Return for each call the tolerance of the least exact dtype before it; None where all have one dtype."""
        flows = self.alignment.flows
        if len({of_dtype(dtype) for flow in flows for dtype in flow.dtypes} - {0.0}) < 2:
            return None
        return _tolerances(self.a, flows[0]), _tolerances(self.b, flows[1])

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


def _inexact(entry: Any) -> float:
    """Return the tolerance of the least exact dtype in an entry."""
    if not isinstance(entry, dict):
        return 0.0
    most = 0.0
    for part in entry.values():
        for item in part if type(part) is list else part.values() if type(part) is dict else ():
            if is_tensor(item):
                most = max(most, of_dtype(item.get("dtype")))
    return most


def _tolerances(dump: Dump, flow: Flow) -> list[float]:
    own = [_inexact(dump.data[name]) for name in flow.names]
    last_backward = 0.0
    for place, links in enumerate(flow.links):
        if flow.parts[place].direction == FORWARD:
            own[place] = max(own[place], max((own[link.producer] for link in links if link.producer >= 0), default=0.0))
        else:
            forward = flow.forward_of(place)
            last_backward = max(last_backward, own[place], own[forward] if forward is not None else 0.0)
            own[place] = last_backward
    return own
