# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Entries that go on, as records of the journal: a value is safe there as soon as its report has returned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from probe.recording.call import Call
from probe.recording.step_recorder import StepRecorder
from probe.store.documents import encode


def write_draft(
    recorder: StepRecorder, call: Call, parts: Mapping[str, Any], backward: bool = False, stack: Sequence[str] = ()
) -> None:
    """Append an entry as it is now to the journal. The record of the finished entry replaces it."""
    if recorder.closed or not (recorder.task.has_values and parts):
        return
    with recorder.writer.errors.guard("writing the journal", call.name(backward)), recorder.queue.lock:
        head: dict[str, Any] = {"name": call.name(backward), "draft": True, "construct": _parents(call, backward)}
        if call.stack >= 0 and not backward:
            head.update(stack=call.stack, lines=list(stack))
        recorder.writer.journal.append(f'{json.dumps(head)[:-1]}, "entry": {encode(dict(parts), "")}}}')


def _parents(call: Call, backward: bool) -> dict[str, str | None]:
    """Return the items of construct.json from a call up to the outermost."""
    found: dict[str, str | None] = {}
    current: Call | None = call
    while current is not None:
        found[current.name(backward)] = None if current.cell is None else current.cell.name(backward)
        current = current.cell
    return found
