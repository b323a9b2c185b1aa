# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Reads one step of one rank, of one run alone or of two, as a part of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from probe.errors import UsageError
from probe.findings.system import reason_of
from probe.reading.check.snapshot import RunSnapshot, Snapshots
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import Slot
from probe.reading.compare.pairing.partners import NONE, Pair
from probe.reading.dumps.document import paused_gc
from probe.reading.dumps.dump import Call, Dump, Tensor
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import Record, greatest, has_nonfinite, is_tensor, leaves
from probe.reading.one_run.health.run_look import look_into as look_into_step
from probe.reading.one_run.nan import LARGEST, NEAR, Found, look_into
from probe.reading.one_run.rank_digest import digest_of
from probe.reading.report import part as kinds
from probe.reading.report.part import Part, PartMaker, producer_of
from probe.reading.report.step_numbers import add_numbers

_PLAIN = {"input_args": "input", "input_kwargs": "kwargs"}
#: how much larger the difference of an output is than that of the inputs, before it counts as grown
_GROWN = 10.0
_FLOOR = 1e-7
#: bins from 1e-12 to 1e0; the first holds all that is less, the last all that is more, and NaN
BINS = 24
_LOWEST = -12.0
_HIGHEST = 0.0
_MOST = 6
_MOST_ELEMENTS = 1 << 24


def run_part(folder: DumpFolder, snapshots: Snapshots | None = None) -> Part:
    """Read one step of one rank, and return its part of the report; ``snapshots`` are those of its run."""
    part = Part(folder.step, folder.rank)
    dump = Dump(folder)
    try:
        with paused_gc():
            _look_alone(part, dump, snapshots.of_rank(folder.rank) if snapshots else None)
            _read_run(part, dump)
            add_numbers(part.series, "b", dump)
    except (UsageError, RecursionError) as error:
        part.found = Found(folder.step, folder.rank, [], [], reason_of(error))
    finally:
        dump.release()
    return part


def _read_run(part: Part, dump: Dump) -> None:
    maker = PartMaker(part)
    flow = dump.flow
    calls = {place: place for place in range(len(dump))}
    for place, call in enumerate(dump):
        before = len(maker.rows)
        state = _rows(maker, place, call, calls)
        maker.add_call(dump, flow, place, state, before)
    maker.finish(flow.names, dump.construct)


def _rows(maker: PartMaker, place: int, call: Call, calls: dict[int, int]) -> int:
    """Add the rows of a call, and return its state."""
    state = kinds.OK
    is_known = False
    for tensor in call.tensors():
        record = tensor.record
        producer = producer_of(call.dump.flow, place, tensor.place, record, calls)
        maker.add_row(tensor.place, None, record, producer)
        is_known = is_known or record.get("Max") is not None
        state = max(state, _tensor_state(record))
    entry = call.entry if isinstance(call.entry, dict) else {}
    for key, word in _PLAIN.items():
        for inner, leaf in leaves(entry.get(key)):
            if not is_tensor(leaf):
                maker.add_row(f"{word}.{inner}", None, leaf, NONE)
    return state if is_known or state else kinds.UNKNOWN


def _tensor_state(record: Record) -> int:
    if has_nonfinite(record):
        return kinds.NAN
    largest = LARGEST.get(str(record.get("dtype")))
    if not largest:
        return kinds.OK
    return kinds.NEAR if greatest(record) > NEAR * largest else kinds.OK


def pair_part(
    folder_a: DumpFolder, folder_b: DumpFolder, options: Options, snapshots: Snapshots | None = None
) -> Part:
    """Compare one step of one rank, and return its part of the report; ``snapshots`` are those of B."""
    part = Part(folder_b.step, folder_b.rank)
    snapshot = snapshots.of_rank(folder_b.rank) if snapshots else None

    def fill(judged: JudgedPairs) -> None:
        _fill(part, judged, snapshot)

    part.summary = compare_unit(folder_a, folder_b, options, fill)
    return part


def _fill(part: Part, comparing: JudgedPairs, snapshot: RunSnapshot | None) -> None:
    read_pairs(part, comparing)
    add_numbers(part.series, "a", comparing.a)
    add_numbers(part.series, "b", comparing.b)
    _look_alone(part, comparing.b, snapshot)
    add_histograms(part, comparing)


def _look_alone(part: Part, dump: Dump, snapshot: RunSnapshot | None) -> None:
    """Add what the readers of one run say about a dump."""
    part.found = look_into(dump)
    part.extras.looked = look_into_step(dump, snapshot, part.found)
    part.digest = digest_of(dump, snapshot)


def read_pairs(part: Part, comparing: JudgedPairs) -> None:
    """Turn a comparison into columns."""
    maker = PartMaker(part)
    flow_a, flow_b = comparing.alignment.flows
    # place of an entry -> the number of its call in the report
    calls_a: dict[int, int] = {}
    calls_b: dict[int, int] = {}
    for number, pair in enumerate(comparing.pairs):
        calls_a[pair.a] = number
        calls_b[pair.b] = number
    calls_a.pop(NONE, None)
    calls_b.pop(NONE, None)
    for pair, slots in zip(comparing.pairs, comparing.slots):
        before = len(maker.rows)
        for slot in slots:
            producer = NONE
            if slot.is_input and is_tensor(slot.b):
                producer = producer_of(flow_b, pair.b, slot.place, slot.b, calls_b)
            maker.add_row(slot.place, slot.a, slot.b, producer, slot)
        state = _pair_state(pair, slots)
        if pair.b == NONE:
            for tensor in [] if slots else _tensors(comparing.a, flow_a, pair.a):
                record = tensor.record
                producer = producer_of(flow_a, pair.a, tensor.place, record, calls_a)
                maker.add_row(tensor.place, record, None, producer)
            maker.add_call(comparing.a, flow_a, pair.a, state, before, pair.how)
            continue
        for tensor in [] if slots or pair.is_whole else _tensors(comparing.b, flow_b, pair.b):
            record = tensor.record
            producer = producer_of(flow_b, pair.b, tensor.place, record, calls_b)
            maker.add_row(tensor.place, None, record, producer)
        name_a = flow_a.names[pair.a] if pair.is_whole else None
        other_name = None if name_a == flow_b.names[pair.b] else name_a
        maker.add_call(comparing.b, flow_b, pair.b, state, before, pair.how, other_name)
    maker.finish(flow_b.names, comparing.a.construct, comparing.b.construct)


def _tensors(dump: Dump, flow: Flow, place: int) -> Iterable[Tensor]:
    """Return the tensors of an entry."""
    return dump[flow.names[place]].tensors()


def _pair_state(pair: Pair, slots: list[Slot]) -> int:
    if pair.b == NONE:
        return kinds.ONLY_A
    if pair.a == NONE:
        return kinds.ONLY_B
    hard = [slot for slot in slots if slot.is_hard]
    given = [slot.distance.rel_l2 or 0.0 for slot in hard if slot.is_input]
    made = [slot.distance.rel_l2 or 0.0 for slot in hard if not slot.is_input]
    if made and max(made) > _GROWN * max(max(given, default=0.0), _FLOOR):
        return kinds.GROWN
    if made or given:
        return kinds.CARRIED
    judged = {slot.verdict for slot in slots if slot.verdict}
    if "argument" in judged:
        return kinds.ARGUMENT
    return kinds.UNKNOWN if judged == {"unknown"} else kinds.OK


def add_histograms(part: Part, comparing: JudgedPairs) -> None:
    """Add the histograms of the arrays that differ first, and of those that differ most, in one step of one rank."""
    if not (comparing.a.header.get("dump_data_dir") and comparing.b.header.get("dump_data_dir")):
        return
    flow_a, flow_b = comparing.alignment.flows
    found = list(_differing(comparing))
    worst = sorted(found, key=lambda item: -item.apart)[:_MOST]
    chosen = {item.row: item for item in (*found[:_MOST], *worst)}
    for item in chosen.values():
        left = _array(comparing.a, flow_a.names[item.pair.a], item.place)
        right = _array(comparing.b, flow_b.names[item.pair.b], item.place)
        counts = None if left is None or right is None else histogram(left, right)
        if counts:
            part.extras.histograms[item.row] = counts


class _Differing(NamedTuple):
    """A tensor whose arrays differ."""

    apart: float
    row: int  # its row in the report
    pair: Pair
    place: str


def _differing(comparing: JudgedPairs) -> Iterator[_Differing]:
    flow_a, flow_b = comparing.alignment.flows
    row = 0
    for pair, slots in zip(comparing.pairs, comparing.slots):
        if not slots and pair.b == NONE:
            row += len(list(_tensors(comparing.a, flow_a, pair.a)))
        elif not slots and pair.a == NONE:
            row += len(list(_tensors(comparing.b, flow_b, pair.b)))
        for slot in slots:
            if slot.is_hard and slot.distance.exact:
                yield _Differing(slot.distance.rel_l2 or 0.0, row, pair, slot.place)
            row += 1


def _array(dump: Any, name: str, place: str) -> Any:
    tensor = next((tensor for tensor in dump[name].tensors() if tensor.place == place), None)
    try:
        return tensor.array() if tensor else None
    except UsageError:
        return None


def histogram(a: Any, b: Any) -> list[int] | None:
    """Return the counts of elements by the logarithm of their error relative to the root mean square of A.

    >>> import numpy as np
    >>> sum(histogram(np.ones(5), np.ones(5) * 1.01))
    5
    """
    import numpy as np

    if a.size != b.size or not 0 < a.size <= _MOST_ELEMENTS:
        return None
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        return None
    x = a.reshape(-1).astype(np.float64)
    y = b.reshape(-1).astype(np.float64)
    finite = x[np.isfinite(x)]
    with np.errstate(all="ignore"):
        scale = float(np.sqrt(np.nanmean(np.square(finite)))) if finite.size else 0.0
        error = np.log10(np.abs(y - x) / (scale or 1.0))
    error = np.where(np.isnan(error), _HIGHEST, error)
    bins = (error - _LOWEST) * BINS / (_HIGHEST - _LOWEST)
    places = np.clip(bins, 0, BINS - 1).astype(int)
    counts = np.bincount(places, minlength=BINS)
    return [int(count) for count in counts]
