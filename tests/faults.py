# Copyright 2026 the probe developers
# SPDX-License-Identifier: Apache-2.0
"""Where failures are put into the tool."""

from __future__ import annotations

import importlib

#: every function that touches a file, and what else stands on the way of a call
DISK = [
    "probe.store.folders.make",
    "probe.store.folders.write",
    "probe.store.folders.in_place",
    "probe.store.journal.Journal.open",
    "probe.store.journal.Journal.append",
    "probe.store.journal.Journal.remove",
    "probe.store.arrays.Arrays.save",
    "probe.store.documents.Documents.write",
    "probe.store.room.Room.take",
]
TOOL = [
    "probe.capture.cells.CellCalls.install",
    "probe.capture.gradients.Gradients.plan",
    "probe.capture.gradients.Gradients.plan_cell",
    "probe.capture.gradients.Gradients.attach",
    "probe.capture.gradients.Gradients.advance",
    "probe.capture.gradients.Gradients.flush",
    "probe.capture.parameters.ParameterHooks.watch",
    "probe.capture.parameters.ParameterHooks.remove",
    "probe.capture.pending.Pending.attach",
    "probe.capture.pending.Pending._take_output",
    "probe.capture.stacks.Stacks.number",
    "probe.measure.host.Host.tensor",
    "probe.measure.host.Host.sum",
    "probe.measure.host.Host.total",
    "probe.measure.values.Describer.value",
    "probe.recorder.Recorder.call",
    "probe.recorder.Recorder.cell_call",
    "probe.recorder.Recorder.opens",
    "probe.recorder.Recorder.begins",
    "probe.recorder.Recorder.ends",
    "probe.recorder.Recorder.gradient",
    "probe.recorder.Recorder.backward_begins",
    "probe.recorder.Recorder.backward_ends",
    "probe.recorder.Recorder.parameter_gradient",
    "probe.store.documents.Documents.entry",
    "probe.store.documents.Documents.stack",
]


def owner_of(path):
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:-1]:
            found = getattr(found, name)
        return found, parts[-1]
    raise AssertionError(path)
