# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""The part of a report for one step of one rank of one run alone."""

from __future__ import annotations

from typing import Any

from probe.errors import UsageError
from probe.reading.dumps.document import paused_gc
from probe.reading.dumps.dump import Call, Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.guard_findings import in_folder
from probe.reading.dumps.text import safe
from probe.reading.dumps.values import Record, has_nonfinite, is_tensor, leaves, real
from probe.reading.one_run.nan import LARGEST, NEAR, Found, look_into
from probe.reading.one_run.rank_checks import digest_of
from probe.reading.report import part as kinds
from probe.reading.report.pair_part import (
    add_note,
    cell_parents,
    numbers,
    own_cell,
    producer_of,
    sequence_key,
    stack_adder,
    type_text,
    value_adder,
)  # fmt: skip
from probe.reading.report.part import Part, PartMaker
from probe.reading.report.series import gradient_norms, loss, update_numbers

_PLAIN = {"input_args": "input", "input_kwargs": "kwargs"}


def run_part(folder: DumpFolder) -> Part:
    """Read one step of one rank, and return its part of the report."""
    part, dump = Part(folder.step, folder.rank), Dump(folder)
    try:
        with paused_gc():
            part.found = look_into(dump)
            RunReader(part, dump).read()
            part.series.losses = {"b": found} if (found := loss(dump)) else {}
            part.series.norms = {"b": gradient_norms(dump)}
            part.series.updates = {"b": update_numbers(dump)}
            part.digest = digest_of(dump)
    except (UsageError, RecursionError) as error:
        told = in_folder(folder.path)
        part.found = Found(folder.step, folder.rank, [], [], str(error) or "nested too deeply", told=told)
    finally:
        dump.release()
    return part


class RunReader:
    """Turns a dump into columns."""

    def __init__(self, part: Part, dump: Dump) -> None:
        self._maker = PartMaker(part)
        self._dump = dump
        self._calls = {place: place for place in range(len(dump))}
        self._add_value = value_adder(self._maker)
        self._add_stack = stack_adder(self._maker)

    def read(self) -> None:
        """Read all calls."""
        dump, maker, flow = self._dump, self._maker, self._dump.flow
        stacks, texts = dump.stacks, maker.texts
        for place, name in enumerate(flow.names):
            call = dump[name]
            before = len(maker.rows)
            state = self._rows(place, call)
            maker.calls.append((
                texts["names"].number(safe(name)), -1, texts["cells"].number(safe(own_cell(flow, place))),
                texts["hows"].number(""), state, self._add_stack(stacks.get(name) or stacks.get(call.parts.forward)),
                len(maker.rows) - before,
            ))  # fmt: skip
            add_note(maker.part, place, call.entry)
        maker.part.parents = cell_parents(dump.construct)
        maker.part.names_key = sequence_key(flow.names)
        maker.finish()

    def _rows(self, place: int, call: Call) -> int:
        """Add the values of a call; return its state."""
        state, known = kinds.OK, False
        flow = self._dump.flow
        for tensor in call.tensors():
            record = tensor.record
            producer = -1
            if not tensor.place.startswith("output"):
                producer = producer_of(flow, place, tensor.place, record, self._calls)
            self._add(tensor.place, record, producer)
            known = known or record.get("Max") is not None
            state = max(state, _state(record))
        if isinstance(call.entry, dict):
            for key, word in _PLAIN.items():
                for inner, leaf in leaves(call.entry.get(key)):
                    if not is_tensor(leaf):
                        self._add(f"{word}.{inner}", leaf, -1)
        return state if known or state else kinds.UNKNOWN

    def _add(self, where: str, value: Any, producer: int) -> None:
        texts = self._maker.texts
        self._maker.rows.append((
            texts["places"].number(safe(where)), 0, -1, texts["types"].number(type_text(value)), -1,
            self._add_value(value), producer, False, None, None, *numbers(None, value),
        ))  # fmt: skip


def _state(record: Record) -> int:
    if has_nonfinite(record):
        return kinds.NAN
    largest = LARGEST.get(str(record.get("dtype")))
    if largest and max(abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")) > NEAR * largest:
        return kinds.NEAR
    return kinds.OK
