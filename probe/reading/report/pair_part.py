# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a report for one step of one rank of two runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from probe.findings.sentence import clauses, say
from probe.reading.compare.answer.unit import compare_unit
from probe.reading.compare.judging.judged_pairs import JudgedPairs, Options
from probe.reading.compare.judging.verdicts import HARD, Slot
from probe.reading.compare.pairing.alignment import NONE, Pair
from probe.reading.dumps import entry_name
from probe.reading.dumps.flow import Flow
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.text import safe, shape, shorten
from probe.reading.dumps.values import is_tensor, plain, real
from probe.reading.report import part as kinds
from probe.reading.report.histograms import add_histograms
from probe.reading.report.part import VERDICTS, Part, PartMaker
from probe.reading.report.series import gradient_norms, loss, update_numbers

_CODES = {verdict: code for code, verdict in enumerate(VERDICTS)}
#: how much larger the difference of an output is than that of the inputs, before it counts as grown
_GROWN, _FLOOR = 10.0, 1e-7
_VALUE = 300
#: key of an entry -> the sentence about it
_NOTES = {"raised": "report.raised", "pending": "report.pending", "error": "report.error"}


def pair_part(folder_a: DumpFolder, folder_b: DumpFolder, options: Options) -> Part:
    """Compare one step of one rank, and return its part of the report."""
    part = Part(folder_b.step, folder_b.rank)
    part.summary = compare_unit(folder_a, folder_b, options, lambda comparing: _fill(part, comparing))
    return part


def _fill(part: Part, comparing: JudgedPairs) -> None:
    from probe.reading.one_run.rank_checks import digest_of

    PairReader(part, comparing).read()
    for side, dump in (("a", comparing.a), ("b", comparing.b)):
        part.series.losses.update({side: found} if (found := loss(dump)) else {})
        part.series.norms[side] = gradient_norms(dump)
        part.series.updates[side] = update_numbers(dump)
    part.digest = digest_of(comparing.b)
    add_histograms(part, comparing)


class PairReader:
    """Turns a comparison into columns."""

    def __init__(self, part: Part, comparing: JudgedPairs) -> None:
        self._maker = PartMaker(part)
        self._comparing = comparing
        self._flows = comparing.alignment.flows
        pairs = comparing.pairs
        self._calls = (
            {pair.a: place for place, pair in enumerate(pairs) if pair.a != NONE},
            {pair.b: place for place, pair in enumerate(pairs) if pair.b != NONE},
        )
        self._add_value = value_adder(self._maker)
        self._add_stack = stack_adder(self._maker)

    def read(self) -> None:
        """Read all calls."""
        comparing, maker = self._comparing, self._maker
        for number, (pair, slots) in enumerate(zip(comparing.pairs, comparing.slots)):
            before = len(maker.rows)
            if slots:
                for slot in slots:
                    self._row(pair, slot)
            elif NONE in (pair.a, pair.b):
                self._alone(pair)
            self._call(number, pair, slots, len(maker.rows) - before)
        maker.part.parents = cell_parents(comparing.a.construct, comparing.b.construct)
        maker.part.names_key = sequence_key(self._flows[1].names)
        maker.finish()

    def _call(self, number: int, pair: Pair, slots: list[Slot], rows: int) -> None:
        texts = self._maker.texts
        side = 1 if pair.b != NONE else 0
        flow, place = self._flows[side], pair.b if side else pair.a
        dump = self._comparing.b if side else self._comparing.a
        name = flow.names[place]
        name_a = self._flows[0].names[pair.a] if side and pair.a != NONE else name
        stacks = dump.stacks
        self._maker.calls.append((
            texts["names"].number(safe(name)), -1 if name_a == name else texts["names"].number(safe(name_a)),
            texts["cells"].number(safe(own_cell(flow, place))), texts["hows"].number(pair.how),
            _state(pair, slots), self._add_stack(stacks.get(name) or stacks.get(flow.parts[place].forward)), rows,
        ))  # fmt: skip
        add_note(self._maker.part, number, dump.data[name])

    def _row(self, pair: Pair, slot: Slot) -> None:
        a, b = slot.a, slot.b
        producer = NONE
        if slot.is_input and is_tensor(b):
            producer = producer_of(self._flows[1], pair.b, slot.place, b, self._calls[1])
        types, texts = self._maker.texts["types"], self._maker.texts
        type_a = types.number(type_text(a))
        type_b = type_a if _same_type(a, b) else types.number(type_text(b))
        self._maker.rows.append((
            texts["places"].number(safe(slot.place)), _CODES.get(slot.verdict, 0), type_a, type_b,
            self._add_value(a), self._add_value(b), producer, slot.distance.exact, slot.distance.rel_l2,
             slot.distance.max_abs, *numbers(a, b),
        ))  # fmt: skip

    def _alone(self, pair: Pair) -> None:
        """Add the tensors of a call without a partner."""
        side = 1 if pair.b != NONE else 0
        dump, place = (self._comparing.a, self._comparing.b)[side], pair.b if side else pair.a
        call = dump[self._flows[side].names[place]]
        types, texts = self._maker.texts["types"], self._maker.texts
        for tensor in call.tensors():
            a, b = (None, tensor.record) if side else (tensor.record, None)
            is_output = tensor.place.startswith("output")
            producer = NONE
            if not is_output:
                producer = producer_of(self._flows[side], place, tensor.place, tensor.record, self._calls[side])
            self._maker.rows.append((
                texts["places"].number(safe(tensor.place)), 0, types.number(type_text(a)), types.number(type_text(b)),
                -1, -1, producer, False, None, None, *numbers(a, b),
            ))  # fmt: skip


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


def sequence_key(names: list[str]) -> str:
    """Return a key of the sequence of calls: equal on all ranks that make the same ones."""
    return hashlib.blake2b("\n".join(names).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


def own_cell(flow: Flow, place: int) -> str:
    """Return the Cell that a call belongs to; a Cell's own entries belong to it."""
    parts = flow.parts[place]
    own = flow.names[place] if parts.kind in (entry_name.CELL, entry_name.GRADIENT) else flow.cells[place]
    return entry_name.cell_label(own) or ""


def cell_parents(*constructs: dict[str, str | None]) -> dict[str, str]:
    """Return Cell -> the Cell around it, "" for the outermost."""
    found: dict[str, str] = {}
    for construct in constructs:
        for name in {parent for parent in construct.values() if parent}:
            label = safe(entry_name.cell_label(name) or "")
            found.setdefault(label, safe(entry_name.cell_label(construct.get(name)) or ""))
        for name, parent in construct.items():
            if name.startswith(("Cell.", "Module.")):
                found.setdefault(safe(entry_name.cell_label(name) or ""), safe(entry_name.cell_label(parent) or ""))
    return found


def producer_of(flow: Flow, place: int, where: str, record: Any, calls: dict[int, int]) -> int:
    """Return the call that made a tensor; -1 where none did."""
    if flow.parts[place].direction == entry_name.FORWARD:
        for link in flow.links[place]:
            if link.place == where:
                return calls.get(link.producer, NONE)
        return NONE
    name = flow.producer(flow.names[place], where, record)
    return NONE if name is None or name == flow.names[place] else calls.get(flow.position[name], NONE)


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is not dict or type(b) is not dict:
        return False
    return all(a.get(key) == b.get(key) for key in ("type", "dtype", "shape"))


def type_text(value: Any) -> str | None:
    """Return the dtype and the shape of a tensor as a text; None for other values."""
    if not is_tensor(value):
        return None
    return safe(f"{value.get('dtype')} {shape(value.get('shape'))}")


def numbers(a: Any, b: Any) -> list[float | None]:
    """Return the four numbers of two records, alternately."""
    get_a = a.get if is_tensor(a) else _nothing
    get_b = b.get if is_tensor(b) else _nothing
    return [
        value if type(value) is float else real(value)
        for key in kinds.NUMBERS
        for value in (get_a(key), get_b(key))
    ]  # fmt: skip


def _nothing(key: str) -> None:
    return None


def value_adder(maker: PartMaker) -> Callable[[Any], int]:
    """Return a function that gives the number of a plain value's text; -1 for tensors and for nothing."""
    values = maker.texts["values"]

    def add(value: Any) -> int:
        return -1 if value is None or is_tensor(value) else values.number(shorten(safe(repr(plain(value))), _VALUE))

    return add


def stack_adder(maker: PartMaker) -> Callable[[list[str] | None], int]:
    """Return a function that gives the number of a stack; -1 for none."""
    known: dict[int, int] = {}
    stacks = maker.texts["stacks"]

    def add(frames: list[str] | None) -> int:
        if not frames:
            return -1
        if id(frames) not in known:
            known[id(frames)] = stacks.number(json.dumps(frames))
        return known[id(frames)]

    return add


def add_note(part: Part, number: int, entry: Any) -> None:
    """Keep what an entry says beside its values: that the call raised, or that nobody waited for it."""
    if isinstance(entry, dict):
        said = [say(row, text=shorten(safe(entry[key]), _VALUE)) for key, row in _NOTES.items() if key in entry]
        if said:
            part.extras.notes[number] = clauses(*said)
