# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a report for one step of one rank of two runs."""

from __future__ import annotations

from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Pair
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import is_tensor
from probe.reading.report import part as kinds
from probe.reading.report.histograms import add_histograms
from probe.reading.report.part import Part, PartMaker, producer_of
from probe.reading.report.series import add_numbers

#: how much larger the difference of an output is than that of the inputs, before it counts as grown
_GROWN, _FLOOR = 10.0, 1e-7


def pair_part(folder_a: DumpFolder, folder_b: DumpFolder, options: Options) -> Part:
    """Compare one step of one rank, and return its part of the report."""
    part = Part(folder_b.step, folder_b.rank)
    part.summary = compare_unit(folder_a, folder_b, options, lambda comparing: _fill(part, comparing))
    return part


def _fill(part: Part, comparing: JudgedPairs) -> None:
    from probe.reading.one_run.rank_checks import digest_of

    PairReader(part, comparing).read()
    for side, dump in (("a", comparing.a), ("b", comparing.b)):
        add_numbers(part.series, side, dump)
    part.digest = digest_of(comparing.b)
    add_histograms(part, comparing)


class PairReader:
    """Turns a comparison into columns."""

    def __init__(self, part: Part, comparing: JudgedPairs) -> None:
        self._maker = PartMaker(part)
        self._comparing = comparing
        self._flows = comparing.alignment.flows
        self._calls = [
            {place: number for number, place in enumerate(places) if place != NONE}
            for places in ([pair.a for pair in comparing.pairs], [pair.b for pair in comparing.pairs])
        ]

    def read(self) -> None:
        """Read all calls."""
        comparing, maker, flows = self._comparing, self._maker, self._flows
        for pair, slots in zip(comparing.pairs, comparing.slots):
            before = len(maker.rows)
            side, dump, place = (0, comparing.a, pair.a) if pair.b == NONE else (1, comparing.b, pair.b)
            for slot in slots:
                is_given = slot.is_input and is_tensor(slot.b)
                producer = producer_of(flows[1], pair.b, slot.place, slot.b, self._calls[1]) if is_given else NONE
                maker.add_row(slot.place, slot.a, slot.b, producer, slot)
            if not slots and NONE in (pair.a, pair.b):
                self._alone(side, dump, place)
            name_a = flows[0].names[pair.a] if side and pair.a != NONE else None
            name_a = None if name_a == flows[side].names[place] else name_a
            maker.add_call(dump, flows[side], place, _state(pair, slots), before, pair.how, name_a)
        maker.finish(flows[1].names, comparing.a.construct, comparing.b.construct)

    def _alone(self, side: int, dump: Dump, place: int) -> None:
        """Add the tensors of a call without a partner."""
        flow = self._flows[side]
        for tensor in dump[flow.names[place]].tensors():
            a, b = (None, tensor.record) if side else (tensor.record, None)
            producer = producer_of(flow, place, tensor.place, tensor.record, self._calls[side])
            self._maker.add_row(tensor.place, a, b, producer)


def _state(pair: Pair, slots: list[Slot]) -> int:
    if pair.b == NONE:
        return kinds.ONLY_A
    if pair.a == NONE:
        return kinds.ONLY_B
    given = [slot.distance.rel_l2 or 0.0 for slot in slots if slot.is_input and slot.verdict in HARD]
    made = [slot.distance.rel_l2 or 0.0 for slot in slots if not slot.is_input and slot.verdict in HARD]
    if made and max(made) > _GROWN * max(max(given, default=0.0), _FLOOR):
        return kinds.GROWN
    if made or given:
        return kinds.CARRIED
    if any(slot.verdict == "argument" for slot in slots):
        return kinds.ARGUMENT
    judged = [slot.verdict for slot in slots if slot.verdict]
    return kinds.UNKNOWN if judged and all(verdict == "unknown" for verdict in judged) else kinds.OK
