# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of a report for one step of one rank of two runs."""

from __future__ import annotations

from typing import Any

from probe.errors import UsageError
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Pair
from probe.reading.dumps.dump import Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import is_tensor
from probe.reading.report import part as kinds
from probe.reading.report.part import Part, PartMaker, add_numbers, producer_of

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


#: bins from 1e-12 to 1e0; the first holds all that is less, the last all that is more, and NaN
BINS = 24
_LOWEST, _HIGHEST = -12.0, 0.0
_MOST, _MOST_ELEMENTS = 6, 1 << 24


def add_histograms(part: Part, comparing: JudgedPairs) -> None:
    """Add the histograms of the arrays that differ first, and of those that differ most, in one step of one rank."""
    if not (comparing.a.header.get("dump_data_dir") and comparing.b.header.get("dump_data_dir")):
        return
    found = []
    row = 0
    for pair, slots in zip(comparing.pairs, comparing.slots):
        if not slots and -1 in (pair.a, pair.b):
            side, place = (0, pair.a) if pair.b == -1 else (1, pair.b)
            dump = (comparing.a, comparing.b)[side]
            row += sum(1 for _ in dump[comparing.alignment.flows[side].names[place]].tensors())
        for slot in slots:
            if slot.verdict in HARD and slot.distance.exact:
                found.append((slot.distance.rel_l2 or 0.0, row, pair, slot.place))
            row += 1
    flow_a, flow_b = comparing.alignment.flows
    worst = sorted(found, key=lambda item: -item[0])[:_MOST]
    for _, number, pair, where in {item[1]: item for item in (*found[:_MOST], *worst)}.values():
        left = _array(comparing.a, flow_a.names[pair.a], where)
        right = _array(comparing.b, flow_b.names[pair.b], where)
        counts = None if left is None or right is None else histogram(left, right)
        if counts:
            part.extras.histograms[number] = counts


def _array(dump: Any, name: str, place: str) -> Any:
    for tensor in dump[name].tensors():
        if tensor.place == place:
            try:
                return tensor.array()
            except UsageError:
                return None
    return None


def histogram(a: Any, b: Any) -> list[int] | None:
    """Return the counts of elements by the logarithm of their error relative to the root mean square of A.

    >>> import numpy as np
    >>> sum(histogram(np.ones(5), np.ones(5) * 1.01))
    5
    """
    import numpy as np

    if a.size != b.size or not 0 < a.size <= _MOST_ELEMENTS or a.dtype.kind == "c" or b.dtype.kind == "c":
        return None
    x, y = a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = float(np.sqrt(np.nanmean(np.square(x[np.isfinite(x)])))) if np.isfinite(x).any() else 0.0
        error = np.log10(np.abs(y - x) / (scale or 1.0))
    error = np.where(np.isnan(error), _HIGHEST, error)
    places = np.clip((error - _LOWEST) * BINS / (_HIGHEST - _LOWEST), 0, BINS - 1).astype(int)
    return [int(count) for count in np.bincount(places, minlength=BINS)]
