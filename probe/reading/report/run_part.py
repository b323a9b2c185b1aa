# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""The part of a report for one step of one rank of one run alone."""

from __future__ import annotations

from probe.errors import UsageError
from probe.reading.check.snapshot import Snapshots
from probe.reading.dumps.document import paused_gc
from probe.reading.dumps.dump import Call, Dump
from probe.reading.dumps.folders import DumpFolder
from probe.reading.dumps.values import Record, has_nonfinite, is_tensor, leaves, real
from probe.reading.one_run.health.look import look_into as look_into_step
from probe.reading.one_run.nan import LARGEST, NEAR, Found, look_into
from probe.reading.one_run.rank_checks import digest_of
from probe.reading.report import part as kinds
from probe.reading.report.part import Part, PartMaker, add_numbers, producer_of

_PLAIN = {"input_args": "input", "input_kwargs": "kwargs"}


def run_part(folder: DumpFolder, snapshots: Snapshots | None = None) -> Part:
    """Read one step of one rank, and return its part of the report; ``snapshots`` are those of its run."""
    part, dump = Part(folder.step, folder.rank), Dump(folder)
    try:
        with paused_gc():
            part.found = look_into(dump)
            part.extras.looked = look_into_step(dump, snapshots.of_rank(folder.rank) if snapshots else None)
            RunReader(part, dump).read()
            add_numbers(part.series, "b", dump)
            part.digest = digest_of(dump)
    except (UsageError, RecursionError) as error:
        part.found = Found(folder.step, folder.rank, [], [], str(error) or "nested too deeply")
    finally:
        dump.release()
    return part


class RunReader:
    """Turns a dump into columns."""

    def __init__(self, part: Part, dump: Dump) -> None:
        self._maker = PartMaker(part)
        self._dump = dump
        self._calls = {place: place for place in range(len(dump))}

    def read(self) -> None:
        """Read all calls."""
        dump, maker, flow = self._dump, self._maker, self._dump.flow
        for place, name in enumerate(flow.names):
            before = len(maker.rows)
            maker.add_call(dump, flow, place, self._rows(place, dump[name]), before)
        maker.finish(flow.names, dump.construct)

    def _rows(self, place: int, call: Call) -> int:
        """Add the values of a call; return its state."""
        state, known, add = kinds.OK, False, self._maker.add_row
        for tensor in call.tensors():
            record = tensor.record
            add(tensor.place, None, record, producer_of(self._dump.flow, place, tensor.place, record, self._calls))
            known = known or record.get("Max") is not None
            state = max(state, _state(record))
        for key, word in _PLAIN.items() if isinstance(call.entry, dict) else ():
            for inner, leaf in leaves(call.entry.get(key)):
                if not is_tensor(leaf):
                    add(f"{word}.{inner}", None, leaf, -1)
        return state if known or state else kinds.UNKNOWN


def _state(record: Record) -> int:
    if has_nonfinite(record):
        return kinds.NAN
    largest = LARGEST.get(str(record.get("dtype")))
    if largest and max(abs(real(record.get(key)) or 0.0) for key in ("Max", "Min")) > NEAR * largest:
        return kinds.NEAR
    return kinds.OK
